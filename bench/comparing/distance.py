# SPDX-License-Identifier: Apache-2.0
"""Whether the processors lie as far apart as they did for the others.

A virtual machine's processors are moved: two of them may be threads of one core now and lie on two dies ten
seconds later, and everything small takes three times as long, whoever sends it. What a program measured there is
compared with what another measured here only where nothing else is to be had: it is measured again first.
"""
import subprocess
import time

from comparing import programs

FAR = 2               # times the least distance seen; on machines that stay as they are it varies by a third
TRIES = 4             # of a program, before its figures are taken as they are
SECONDS_TO_SETTLE = 20


class Distance:
    """Measures with `program` (limit/apart.cpp), in ns; without one nothing is far."""

    def __init__(self, program, sleep=time.sleep):
        self.program, self.sleep = program, sleep
        self.least = {}    # ranks -> ns
        self.repeated = 0  # programs
        self.far = 0       # of these, those taken as they were

    def ask(self, ranks):
        done = subprocess.run([self.program, "--ranks", str(ranks)], capture_output=True, text=True, check=True)
        return float(done.stdout)

    def ns(self, ranks):
        found = self.ask(ranks)
        self.least[ranks] = min(found, self.least.get(ranks, found))
        return found

    def is_far(self, ranks, ns):
        return ns > FAR * self.least[ranks]

    def settled(self, ranks):
        """ns, as soon as the processors are near. Where they stay far, that is near from now on."""
        for _ in range(SECONDS_TO_SETTLE):
            ns = self.ns(ranks)
            if not self.is_far(ranks, ns):
                return ns
            self.sleep(1)
        self.least[ranks] = ns
        return ns

    def steadily(self, measure, group):
        """What measure() returned with near processors before and after it, and how far they were, in ns."""
        if not self.program or group.ranks < 2 or not programs.fits(group):
            return measure(), None
        for attempt in range(TRIES):
            before = self.settled(group.ranks)
            found = measure()
            ns = max(before, self.ns(group.ranks))
            if not self.is_far(group.ranks, ns):
                break
            self.repeated += attempt + 1 < TRIES
        else:
            self.far += 1
        return found, ns

    def note(self):
        """For the end of a run; empty where there is nothing to say."""
        if not self.repeated:
            return ""
        taken = f", {self.far} taken as they were" if self.far else ""
        return f"processors moved apart during {self.repeated} programs, which were run again{taken}"


def near_only(samples):
    """samples[name][size]: [(us, ns)] to [us]. Without those measured far apart, where each name has nearer ones."""
    known = [ns for sizes in samples.values() for found in sizes.values() for _, ns in found if ns]
    most = FAR * min(known, default=0)
    kept = {name: {size: [us for us, ns in found if not ns or ns <= most] for size, found in sizes.items()}
            for name, sizes in samples.items()}
    if all(found for sizes in kept.values() for found in sizes.values()):
        return kept
    return {name: {size: [us for us, _ in found] for size, found in sizes.items()}
            for name, sizes in samples.items()}
