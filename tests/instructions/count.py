#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of blocking calls of little data (calls.cpp), and compares them with those on record.

  count.py PROGRAM COUNTS COMPILER            fails where a count is more than 10 % above or below the record:
                                              what has been gained is to be recorded, or it could be lost unnoticed
  count.py PROGRAM COUNTS COMPILER --record   writes COUNTS anew

COMPILER is the compiler's name and version, as in "GNU 12.2.0". Counts of another compiler, or of another
major version, say nothing: then, and without valgrind, the test is skipped (exit status 77).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
ALLOWED_CHANGE = 1.10


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIPPED)


def count(program):
    """Instructions per call, by name, in the order in which the program makes the calls."""
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory) / "out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--toggle-collect=counted_*", "--zero-before=end_of_warm_up",
             "--dump-after=end_of_calls", f"--callgrind-out-file={out}", program],
            # The baseline's vectors, so that counts are those of every processor.
            env={**os.environ, "COLLX_VECTORS": "generic"}, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"{program} under callgrind: exit status {run.returncode}\n{run.stdout}{run.stderr}")
        made = [line.split() for line in run.stdout.splitlines()]
        counts = {}
        for part, (name, calls) in enumerate(made, start=1):
            text = pathlib.Path(f"{out}.{part}").read_text(encoding="utf-8")
            counts[name] = int(re.search(r"^summary: (\d+)", text, re.MULTILINE).group(1)) / int(calls)
    return counts


def read(path):
    """The counts on record, and the compiler they were made with."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    prefix = "# compiler: "
    compiler = next(line for line in lines if line.startswith(prefix)).removeprefix(prefix)
    pairs = [line.split() for line in lines if line and not line.startswith("#")]
    return compiler, {name: float(value) for name, value in pairs}


def write(path, compiler, counts):
    rows = "".join(f"{name:20} {value:6.1f}\n" for name, value in counts.items())
    pathlib.Path(path).write_text(
        "# Instructions of one blocking call on 2 ranks, of 8 bytes if its name does not say otherwise, polling\n"
        "# left out, at -O2 -DNDEBUG: what tests/instructions holds the library to. Written by count.py --record;\n"
        "# docs/benchmarks.md says how.\n"
        f"# compiler: {compiler}\n{rows}", encoding="utf-8")


def major(compiler):
    return compiler.split(".")[0]


def main():
    program, path, compiler, *more = sys.argv[1:]
    if shutil.which("valgrind") is None:
        skip("no valgrind; scripts/test.sh installs it (Debian: valgrind)")
    if more == ["--record"]:
        write(path, compiler, count(program))
        return
    recorded_with, recorded = read(path)
    if major(compiler) != major(recorded_with):
        skip(f"the counts on record are those of {recorded_with}, this is {compiler}")
    counts = count(program)
    gone = recorded.keys() - counts.keys()
    if gone:
        sys.exit(f"on record, and not measured: {', '.join(sorted(gone))}. If that is meant, run count.py with --record")
    changed = []
    print(f"{'call':20} {'now':>7} {'record':>7}")
    for name, now in counts.items():
        if name not in recorded:
            sys.exit(f"{name} is not on record; run count.py with --record")
        print(f"{name:20} {now:7.1f} {recorded[name]:7.1f}")
        if max(now / recorded[name], recorded[name] / now) > ALLOWED_CHANGE:
            changed.append(name)
    if changed:
        sys.exit(f"more than 10 % away from the record: {', '.join(changed)}. If that is meant, record it: "
                 f"count.py {program} {path} '{compiler}' --record")


if __name__ == "__main__":
    main()
