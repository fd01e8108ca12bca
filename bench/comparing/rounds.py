# SPDX-License-Identifier: Apache-2.0
"""Runs the programs in turn, never two at once, and collects one median per program, round and size."""
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field

from comparing import distance, groups, hosts, network, programs

SECONDS_PER_SIZE = 30  # a program that takes longer hangs
SECONDS_TO_END = 5     # when it has said all
PR_SET_CHILD_SUBREAPER = 36


class Failed(Exception):
    """A program ended badly, or with wrong results."""


@dataclass
class Measured:
    times: dict             # times[launch.name][bytes]: the medians, one per round, in microseconds
    is_mixed: bool = False  # they were measured at different distances
    failed: list = field(default_factory=list)  # peers


def weight(group):
    """Of one program of the group, for the time left: fewer sizes are faster, waiting for cores is slower."""
    return (2 + len(group.bytes)) * (1 if programs.fits(group) else 2)


def run(launches, group, bar, apart=distance.Distance(None)):
    """What was Measured. A peer that fails is left out of the group."""
    times = defaultdict(lambda: defaultdict(list))
    failed = set()
    timed = measure_over_tcp if hosts.is_networked(group) else measure
    for done in range(group.rounds * len(launches)):
        turn, place = divmod(done, len(launches))
        launch = launches[(turn + place) % len(launches)]  # nobody always comes after the same one
        bar.step(groups.label(group), launch.name, weight(group))
        if launch.name in failed:
            continue
        try:
            found, ns = apart.steadily(lambda: timed(launch, group), group)
            for point in found:
                times[launch.name][point["bytes"]].append((point["median_us"], ns))
        except Failed as problem:
            if launch.memory:
                raise
            failed.add(launch.name)
            bar.note(f"{launch.name} is left out of {groups.label(group)}: {problem}")
    for name in failed:
        times.pop(name, None)
    return Measured(*distance.alike(times), sorted(failed))


def warn_if_busy():
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"note: this machine is busy (load {load:.1f}); the figures will scatter", file=sys.stderr)


def described(launch, what):
    return f"{launch.name} {what}: {' '.join(launch.command)}"


def measure(launch, group):
    answers = None if launch.json_path else len(group.bytes)
    output = start(launch, SECONDS_PER_SIZE * (1 + len(group.bytes)), answers)
    if launch.json_path:
        with open(launch.json_path, encoding="utf-8") as file:
            found = [dict(point, bytes=point["bytes_asked"]) for point in json.load(file)]
    else:
        found = lines(output)
    if len(found) != len(group.bytes):
        raise Failed(described(launch, f"answered {len(found)} of {len(group.bytes)} sizes"))
    if any(point["median_us"] <= 0 for point in found):
        raise Failed(described(launch, "measured calls that cannot be told from the writing of their inputs"))
    if any(point["wrong"] > 0 for point in found):
        raise Failed(described(launch, "computed wrong results"))
    return found


def measure_over_tcp(launch, group):
    """What does not show on the loopback interface went another way, and is no figure of TCP."""
    before = network.carried_bytes()
    found = measure(launch, group)
    carried = network.carried_bytes() - before
    if carried < network.least_bytes(group):
        raise Failed(described(launch, f"did not use TCP: lo carried {carried} bytes while it ran"))
    return found


def lines(output):
    """The points among whatever else a launcher prints."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def start(launch, limit_seconds, answers=None):
    """The program's stdout. When this returns, nothing that it started runs any more: MPICH's proxies, in
    sessions of their own, have been seen to survive their launcher, and to take a core from all that came after."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what is left behind becomes our child
    known = children()
    try:
        return run_program(launch, limit_seconds, answers)
    finally:
        end_children(lambda: children() - known)


def children():
    found = set()
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children", encoding="ascii") as file:
            found.update(map(int, file.read().split()))
    return found


def end_children(who):
    """Whose own children become ours when it ends: until there are none, or they cannot be ended."""
    deadline = time.monotonic() + SECONDS_TO_END
    while (left := who()) and time.monotonic() < deadline:
        for pid in left:
            give_way(pid)
            os.kill(pid, signal.SIGKILL)  # ours, and so at least a zombie
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)


def give_way(pid):
    """With --real-time a proxy has been seen to spin inside the kernel, waiting for one with less priority on
    its own processor: no signal ends it before that one has run."""
    try:
        os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
    except (PermissionError, ProcessLookupError):
        pass


def run_program(launch, limit_seconds, answers):
    """Its own process group, so that a launcher's ranks end with it.

    With `answers` lines of JSON it has said all: MPICH over TCP at times never returns from MPI_Finalize."""
    process = subprocess.Popen(launch.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               stdin=subprocess.DEVNULL, start_new_session=True,
                               env={**os.environ, **launch.environment})
    deadline = time.monotonic() + limit_seconds
    last_said = None
    while True:
        try:
            patience = min(SECONDS_TO_END, max(0, deadline - time.monotonic()))
            output, errors = process.communicate(timeout=patience)
            break
        except subprocess.TimeoutExpired as problem:
            said = (problem.stdout or b"").decode(errors="replace")
            if answers and said == last_said and len(lines(said)) == answers:
                end_group(process)
                return said
            last_said = said
            if time.monotonic() >= deadline:
                end_group(process)
                raise Failed(described(launch, f"did not end within {limit_seconds} s")) from None
        except BaseException:
            end_group(process)
            raise
    if process.returncode != 0:
        raise Failed(f"{described(launch, f'ended with {process.returncode}')}\n{errors}{output}")
    return output


def end_group(process):
    """A launcher is asked first: on SIGTERM it also ends ranks that left its process group."""
    for step in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, step)
        except ProcessLookupError:
            return
        try:
            process.communicate(timeout=5)
            return
        except subprocess.TimeoutExpired:
            continue
