# SPDX-License-Identifier: Apache-2.0
"""several_paths_test.py COLLX_PERF FOLDER: bench/several_paths with two cables. One connection is on one of them,
sixteen on both (all on one by chance: once in 30,000 runs), and nothing is left behind."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
loader = importlib.machinery.SourceFileLoader("several_paths", os.path.join(BENCH, "several_paths"))
several_paths = importlib.util.module_from_spec(importlib.util.spec_from_loader("several_paths", loader))
loader.exec_module(several_paths)

from comparing import builds, hosts, paths  # noqa: E402  (several_paths has said where)

PRIVILEGES = ("Operation not permitted", "Permission denied", "Unknown device type", "qdisc kind is unknown",
              "No such file", "not supported")


def main(collx_perf, folder):
    asked = several_paths.parse(["--cables", "200,200", "--flows", "1,16", "--mib", "8", "--rounds", "1",
                                 "--congestion", "reno"])
    built = builds.Built(folder, collx=collx_perf)
    try:
        names = paths.make(asked.cables, asked.congestion)
    except (hosts.Refused, OSError) as problem:
        if not any(words in str(problem) for words in PRIVILEGES):
            raise
        print(f"SKIPPED: {problem}")
        return
    found = several_paths.measure(asked, [several_paths.collx(asked, built, flows) for flows in asked.flows], names)
    several_paths.show(asked, found)
    one, many = (found[f"collx, {flows} flows"][0] for flows in asked.flows)
    assert max(one["shares"]) > 0.95, one
    assert min(many["shares"]) > 0.05, many
    assert one["mbit"] < 210 < 2 * many["mbit"], (one, many)
    paths.remove()
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    assert not any(name in left for name in names), left


if __name__ == "__main__":
    main(*sys.argv[1:])
