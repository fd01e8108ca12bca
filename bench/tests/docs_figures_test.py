# SPDX-License-Identifier: Apache-2.0
"""What README.md and docs/ say of the points in docs/data is what bench/compare makes of them."""
import json
import os
import statistics
import sys
import unittest

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(BENCH)
sys.path.insert(0, BENCH)

from comparing import overview, summary  # noqa: E402

HOSTS = "amd_zen5_two_hosts_composite"
SECOND, FOURTH, CROWDED = "amd_epyc_two_ranks_shm", "amd_zen5_two_ranks_shm", "amd_zen5_many_ranks_shm"
CROWDED_OTHERS = "amd_epyc_many_ranks_shm", "amd_zen3_many_ranks_shm", "intel_xeon5_many_ranks_shm"
NEWEST, FRESH = "intel_xeon5_two_ranks_shm", "intel_xeon5_two_ranks_fresh"
COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce"]


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def points(name):
    return json.loads(read("docs", "data", f"{name}.json"))


def of(found, **wanted):
    return [p for p in found if all(p[name] == value for name, value in wanted.items())]


def mean(found):
    return f"{summary.times_faster(found):.2f}"


def section(heading):
    """Of docs/benchmarks.md."""
    return read("docs", "benchmarks.md").split(f"\n### {heading}\n")[1].split("\n### ")[0]


def means(found):
    return [mean(found), mean(of(found, buffers="rotating")), mean(of(found, buffers="hot"))]


def row(*cells):
    return f"| {' | '.join(map(str, cells))} |"


class SeveralPaths(unittest.TestCase):
    def test_shares_are_those_of_the_data(self):
        told = section("Several paths between two hosts")
        runs = points("amd_epyc_several_paths")  # equal cables, one slow, and both before
        columns = [self.shares(run) for run in (runs[0], runs[2], runs[1], runs[3])]
        for name in columns[0]:
            label = "Open MPI, which is told four interfaces" if "MPI" in name else name.split()[1]
            self.assertIn(row(label, *(column.get(name, "") for column in columns)).replace("|  |", "| |")
                          .replace("|  |", "| |"), told)

    @staticmethod
    def shares(run):
        most = sum(run["cables_mbit"]) * 1448 / 1514
        return {name: f"{statistics.median(one['mbit'] for one in each) / most:.0%}".replace("%", " %")
                for name, each in run["rounds"].items() if each}


class Plots(unittest.TestCase):
    def test_are_what_redraw_draws(self):
        for plot, data in (("compare", FOURTH), ("compare_many_ranks", CROWDED)):
            same = read("docs", "img", f"{plot}.svg") == overview.draw(points(data))
            self.assertTrue(same, f"draw it again: bench/compare --redraw --json docs/data/{data}.json "
                            f"--plot docs/img/{plot}.svg")


class Figures(unittest.TestCase):
    def test_of_the_readme(self):
        for machine, data in (("Intel Xeon (fifth generation)", NEWEST), ("AMD EPYC (fourth generation)", SECOND),
                              ("AMD EPYC (fifth generation); the plot", FOURTH)):
            found = points(data)
            both = [mean(of(found, memory=memory)) for memory in ("private", "symmetric")]
            slower = f"{len(summary.slower(found))} of {len(summary.compared(found))}"
            self.assertIn(row(machine, *both, slower), read("README.md"))

    def test_of_two_ranks(self):
        for heading, data in (("The newest machine", NEWEST), ("A second machine", SECOND), ("A fourth machine", FOURTH)):
            found, told = points(data), section(heading)
            for memory in ("private", "symmetric"):
                some = of(found, memory=memory)
                self.assertIn(row(memory, *means(some), len(some), len(summary.slower(some))), told)
                for state in ("rotating", "hot"):
                    each = [mean(of(some, buffers=state, collective=name)) for name in COLLECTIVES]
                    self.assertIn(row(f"{memory}, {state}", *each), told)

    def test_of_fresh_inputs(self):
        found, told = points(FRESH), section("The newest machine")
        for memory in ("private", "symmetric"):
            some = of(found, memory=memory)
            self.assertIn(row(memory, mean(some), *(mean(of(some, collective=name)) for name in COLLECTIVES)), told)
        self.assertIn(" and ".join(mean(of(found, memory=memory)) for memory in ("private", "symmetric")), read("README.md"))
        self.assertEqual(len(summary.slower(found)), 1)

    def test_of_more_ranks_than_processors(self):
        told = section("More ranks than processors")
        for data in (CROWDED, *CROWDED_OTHERS):
            found = points(data)
            for ranks in (4, 8):
                for memory in ("private", "symmetric"):
                    some = of(found, ranks=ranks, memory=memory)
                    self.assertIn(row(ranks, memory, *means(some), len(some), len(summary.slower(some))), told)

    def test_of_several_hosts(self):
        found, told = points(HOSTS), section("Several hosts with shared memory inside")
        shown = [8, 128, 2 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20]
        for ranks, sizes in ((4, shown + [64 << 20]), (8, shown)):
            some = of(found, ranks=ranks)
            self.assertIn(f"{len(some)}\npoints {mean(some)}" if ranks == 4 else f"{len(some)} points {mean(some)}", told)
            for name in COLLECTIVES:
                each = [mean(of(some, collective=name, bytes=size)) for size in sizes]
                self.assertIn(row(name, *each, mean(of(some, collective=name))), told)
            self.assertIn(f"| barrier | {mean(of(some, collective='barrier'))} |", told)
        self.assertEqual(len(summary.slower(of(found, ranks=4))), 2)
        self.assertEqual(len(summary.slower(of(found, ranks=8))), 0)

    def test_of_tcp(self):
        shown = [8, 128, 2 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20, 64 << 20]
        for heading, machine, ranks in (("Two ranks on the newest machine", "intel_xeon5", "two"),
                                        ("Two ranks on the second machine", "amd_epyc", "two"),
                                        ("Two ranks on the fourth machine", "amd_zen5", "two"),
                                        ("Two ranks on the fifth machine", "amd_zen3", "two"),
                                        ("Four ranks on two cores", "amd_epyc", "four"),
                                        ("Four ranks on two cores", "amd_zen5", "four"),
                                        ("Four ranks on two cores", "intel_xeon5", "four")):
            for network in ("tcp",) if (machine, ranks) in (("intel_xeon5", "two"), ("amd_zen3", "two")) else ("tcp", "veth"):
                found, told = points(f"{machine}_{ranks}_ranks_{network}"), section(heading)
                for name in ("all_reduce", "all_to_all", "broadcast"):
                    some = of(found, collective=name)
                    each = [mean(of(some, bytes=size)) for size in shown]
                    self.assertIn(row(name, *each, mean(some)), told)

    def test_of_tcp_on_the_newest_machine(self):
        for name, words, times_faster, slower in (
                ("two_ranks_tcp_cubic", "", "1.31", 0), ("two_ranks_veth", "", "1.58", 2),
                ("two_ranks_veth_small", "8 B to 2 KiB ", "1.21", 0),
                ("four_ranks_tcp", "", "1.46", 3), ("four_ranks_veth", "", "1.45", 0)):
            found = points(f"intel_xeon5_{name}")
            heading = "Two ranks on the newest machine" if name.startswith("two") else "Four ranks on two cores"
            self.assertEqual(len(summary.slower(found)), slower, name)
            self.assertRegex(section(heading).replace("\n", " "),
                             rf"\(data/intel_xeon5_{name}\.json\)\): {words}{times_faster}\b")
            self.assertEqual(mean(found), times_faster, name)

    def test_of_instructions(self):
        told = section("Instructions of a small call")
        names = ["all_reduce", "barrier", "all_gather", "reduce_root", "reduce_leaf", "broadcast_root", "broadcast_leaf",
                 "all_reduce_512_B", "all_reduce_2_KiB", "all_gather_512_B", "broadcast_root_512_B", "broadcast_leaf_512_B"]
        for compiler, file in (("g++ 12", "counts_GNU.txt"), ("clang++ 22", "counts_Clang.txt")):
            lines = [line.split() for line in read("tests", "instructions", file).splitlines()]
            counts = {line[0]: f"{float(line[1]):.0f}" for line in lines if line[0] != "#"}
            self.assertIn(row(compiler, *map(counts.get, names)), told)


if __name__ == "__main__":
    unittest.main()
