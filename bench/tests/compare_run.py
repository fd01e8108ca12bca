# SPDX-License-Identifier: Apache-2.0
"""compare_run.py FOLDER: bench/compare from end to end, against what is installed, by sizes and ranks that nobody listed."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, BENCH)

from comparing import builds  # noqa: E402

ASKED = {"collective": "all_reduce", "ranks": 3, "transport": "shm", "rounds": 1}
SIZES, MEMORY, STATES = [7, 12, 100_000], ["private", "symmetric"], ["rotating", "fresh"]


def compare(folder, peers):
    path = os.path.join(folder, "points.json")
    command = [sys.executable, os.path.join(BENCH, "compare"), "--collective", "all_reduce", "--ranks", "3", "--bytes",
               ",".join(map(str, SIZES)), "--memory", ",".join(MEMORY), "--buffers", ",".join(STATES), "--rounds", "1", "--peers", ",".join(peers),
               "--json", path, "--build", os.path.join(folder, "build")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ratio: collx over the best peer" in done.stdout, done.stdout
    with open(path, encoding="utf-8") as file, open(os.path.join(folder, "points.svg"), encoding="utf-8") as plot:
        assert "<svg" in plot.read()
        return json.load(file)


def main(folder):
    peers = [peer for peer in builds.PEERS if builds.is_installed(peer)]
    if os.environ.get("COLLX_TEST_WIDE") not in ("1", "all") or not peers:
        print("SKIPPED: COLLX_TEST_WIDE=1 asks for this test, which builds for a minute, and a peer is needed")
        return
    points = compare(folder, peers)
    found = [(point["buffers"], point["bytes"], point["memory"]) for point in points]
    assert found == [(state, size, memory) for state in STATES for size in SIZES for memory in MEMORY], found
    for point in points:
        assert {key: point[key] for key in ASKED} == ASKED, point
        assert sorted(point["peers_us"]) == sorted(peers), point
        times = [point["collx_us"], *point["peers_us"].values()]
        assert (point["limit_us"] is None) == (point["buffers"] == "fresh"), point
        times += [point["limit_us"]] if point["limit_us"] is not None else []
        assert all(0 < us < 1e6 for us in times), point
        assert abs(point["ratio"] - point["collx_us"] / min(point["peers_us"].values())) < 1e-3, point


if __name__ == "__main__":
    main(sys.argv[1])
