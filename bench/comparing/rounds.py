# SPDX-License-Identifier: Apache-2.0
"""Runs the programs in turn, never two at once, and collects one median per program, round and size."""
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict

SECONDS_PER_SIZE = 30  # a program that takes longer hangs


class Failed(Exception):
    """A program ended badly, or with wrong results."""


def run(launches, asked):
    """times[launch.name][bytes]: the medians, one per round, in microseconds."""
    warn_if_busy()
    times = defaultdict(lambda: defaultdict(list))
    total, begun = asked.rounds * len(launches), time.monotonic()
    for done in range(total):
        turn, place = divmod(done, len(launches))
        launch = launches[(turn + place) % len(launches)]  # nobody always comes after the same one
        progress(done, total, begun, launch.name)
        for point in measure(launch, asked):
            times[launch.name][point["bytes"]].append(point["median_us"])
    progress(total, total, begun, "")
    return times


def warn_if_busy():
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"note: this machine is busy (load {load:.1f}); the figures will scatter", file=sys.stderr)


def progress(done, total, begun, name):
    elapsed = time.monotonic() - begun
    left = f"{elapsed / done * (total - done):.0f} s left" if done else ""
    bar = "#" * (30 * done // total)
    if sys.stderr.isatty():
        print(f"\r[{bar:<30}] {done}/{total} {name:<16} {left:<12}", end="\n" if done == total else "",
              file=sys.stderr, flush=True)
    elif done < total:
        print(f"[{done + 1}/{total}] {name} {left}", file=sys.stderr, flush=True)


def described(launch, what):
    return f"{launch.name} {what}: {' '.join(launch.command)}"


def measure(launch, asked):
    output = start(launch, SECONDS_PER_SIZE * (1 + len(asked.bytes)))
    if launch.json_path:
        with open(launch.json_path, encoding="utf-8") as file:
            found = [dict(point, bytes=point["bytes_asked"]) for point in json.load(file)]
    else:
        found = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if len(found) != len(asked.bytes):
        raise Failed(described(launch, f"answered {len(found)} of {len(asked.bytes)} sizes"))
    if any(point["wrong"] > 0 for point in found):
        raise Failed(described(launch, "computed wrong results"))
    return found


def start(launch, limit_seconds):
    """The program's stdout. Its own process group, so that a launcher's ranks end with it."""
    process = subprocess.Popen(launch.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        output, errors = process.communicate(timeout=limit_seconds)
    except BaseException as problem:
        end_group(process)
        if isinstance(problem, subprocess.TimeoutExpired):
            raise Failed(described(launch, f"did not end within {limit_seconds} s")) from None
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
