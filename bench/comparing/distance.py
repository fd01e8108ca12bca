# SPDX-License-Identifier: Apache-2.0
"""Whether the processors lie as far apart as they did for the others.

A virtual machine's processors are moved: two of them may be threads of one core now and lie on two dies ten
seconds later, and everything small takes three times as long, whoever sends it. What a program measured there is
measured again, and is never compared with what another measured here.
"""
import subprocess
import time

from comparing import programs

FAR = 2               # times the least distance seen; on machines that stay as they are it varies by a third
TRIES = 4             # of a program, before its figures are taken as they are
SECONDS_TO_SETTLE = 20
SECONDS_TO_ANSWER = 30


def processors_of(group):
    """How many a group's ranks are on: on all, where they share them."""
    return min(group.ranks, programs.processors())


class Distance:
    """Measures with `program` (limit/apart.cpp), in ns; without one nothing is far."""

    def __init__(self, program, sleep=time.sleep):
        self.program, self.sleep = program, sleep
        self.least = {}    # processors -> ns
        self.moved = 0     # programs
        self.far = 0       # of these, those taken as they were
        self.problem = ""

    def ask(self, group):
        command = [*programs.ranks_own_priority(group), self.program, "--ranks", str(processors_of(group))]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS_TO_ANSWER)
        return float(done.stdout)

    def ns(self, group):
        """None from the first time on that it cannot be found out: a table goes on without."""
        if not self.program:
            return None
        try:
            found = self.ask(group)
        except (OSError, ValueError, subprocess.SubprocessError) as problem:
            self.program, self.problem = None, str(problem)
            return None
        self.least[processors_of(group)] = min(found, self.least.get(processors_of(group), found))
        return found

    def is_far(self, group, ns):
        return ns is not None and ns > FAR * self.least[processors_of(group)]

    def settled(self, group):
        """ns, as soon as the processors are near. Where they stay far, that is near from now on."""
        for _ in range(SECONDS_TO_SETTLE):
            ns = self.ns(group)
            if not self.is_far(group, ns):
                return ns
            self.sleep(1)
        self.least[processors_of(group)] = ns
        return ns

    def steadily(self, measure, group):
        """What measure() returned with near processors before and after it, and how far they were, in ns."""
        if processors_of(group) < 2:
            return measure(), None
        for attempt in range(TRIES):
            before = self.settled(group)
            found = measure()
            after = self.ns(group)
            ns = None if None in (before, after) else max(before, after)
            if not self.is_far(group, ns):
                break
            self.moved += attempt == 0
        else:
            self.far += 1
        return found, ns

    def note(self):
        """For the end of a run; empty where there is nothing to say."""
        said = [f"how far processors are apart was not measured to the end: {self.problem}"] if self.problem else []
        if self.moved:
            taken = f"; {self.far} of them were taken as they were in the end" if self.far else ""
            said.append(f"processors moved apart during {self.moved} programs, which were run again{taken}")
        return "; ".join(said)


def alike(samples):
    """samples[name][size]: [(us, ns)] to [us], and whether they are mixed.

    Like is compared with like: what was measured near, if everybody has that, or else what was measured far,
    or where nobody asked. Otherwise nothing can be compared: all is kept, as mixed."""
    asked = [ns for sizes in samples.values() for found in sizes.values() for _, ns in found]
    near = FAR * min((ns for ns in asked if ns is not None), default=0)
    for is_one in (lambda ns: ns is not None and ns <= near, lambda ns: ns is not None and ns > near,
                   lambda ns: ns is None):
        kept = {name: {size: [us for us, ns in found if is_one(ns)] for size, found in sizes.items()}
                for name, sizes in samples.items()}
        if all(found for sizes in kept.values() for found in sizes.values()):
            return kept, False
    return {name: {size: [us for us, _ in found] for size, found in sizes.items()}
            for name, sizes in samples.items()}, True
