# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/compare that need no peer: its groups, points, tables, means, and plots."""
import io
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, BENCH)

from comparing import builds, groups, overview, plot, programs, report, rounds, summary  # noqa: E402
from comparing.progress import Progress  # noqa: E402


def request(**changes):
    usual = dict(collective="all_reduce", ranks=2, transport="shm", memory=["private", "symmetric"],
                 peers=["openmpi", "mpich"], bytes=[0, 8, 1 << 20], algorithm="auto", place="out_of_place",
                 state="rotating", rounds=3, congestion=None, network=None, real_time=False, absent=[])
    asked = {**usual, **changes}
    return SimpleNamespace(**{"hosts": asked["ranks"], **asked})


def times(asked):
    slower = {"collx private": 1, "collx symmetric": 0.5, "openmpi": 3, "mpich": 2}
    return {name: {size: [factor * (1 + size / 1000) * noise for noise in (1.0, 1.1, 9.0)]
                   for size in asked.bytes} for name, factor in slower.items()}


class Points(unittest.TestCase):
    def test_ratio_is_collx_over_the_best_peer(self):
        asked = request()
        points = report.points(times(asked), asked)
        self.assertEqual(len(points), 6)
        self.assertEqual([p["ratio"] for p in points if p["bytes"] == 8], [0.5, 0.25])
        wanted = {"collective", "bytes", "ranks", "memory", "transport", "collx_us", "peers_us", "ratio",
                  "buffers", "limit_us"}
        self.assertTrue(wanted <= points[0].keys())
        self.assertEqual(points[2]["peers_us"].keys(), {"openmpi", "mpich"})

    def test_a_peer_without_figures_has_none(self):
        asked = request(peers=["openmpi", "mpich", "gloo"])
        points = report.points(times(asked), asked)
        self.assertEqual(points[0]["peers_us"].keys(), {"openmpi", "mpich"})
        self.assertNotIn("gloo", report.table(points, asked))
        self.assertEqual(points[0]["lacks"], ["gloo"])
        self.assertNotIn("lacks", report.points(times(request()), request())[0])
        self.assertEqual(report.points(times(request()), request(absent=["gloo"]))[0]["lacks"], ["gloo"])

    def test_what_is_mixed_is_marked_and_in_no_mean(self):
        asked = request(bytes=[8])
        points = report.points(times(asked), asked, is_mixed=True)
        self.assertEqual({p["mixed"] for p in points}, {True})
        self.assertEqual(report.table(points, asked).count("mixed"), 3)
        self.assertEqual(summary.compared(points), [])
        plot.draw(points, asked)

    def test_the_limit_is_that_of_the_size(self):
        asked = request(bytes=[8])
        points = report.points({**times(asked), "limit": {8: [0.25, 0.5, 0.25]}}, asked)
        self.assertEqual([p["limit_us"] for p in points], [0.25, 0.25])
        self.assertIn("limit", report.table(points, asked))
        self.assertEqual(report.points(times(asked), asked)[0]["limit_us"], None)

    def test_one_slow_round_does_not_count(self):
        asked = request(bytes=[0])
        self.assertEqual(report.points(times(asked), asked)[0]["collx_us"], 1.1)

    def test_without_peers_or_without_collx_there_is_no_ratio(self):
        for asked in (request(peers=[]), request(memory=[])):
            points = report.points(times(asked), asked)
            self.assertEqual({p["ratio"] for p in points}, {None})
            report.table(points, asked)

    def test_table_has_a_row_per_size(self):
        asked = request()
        lines = report.table(report.points(times(asked), asked), asked).splitlines()
        self.assertEqual(sum(line.lstrip().startswith(("0 B", "8 B", "1 MiB")) for line in lines), 3)


class Plot(unittest.TestCase):
    def test_is_well_formed_whatever_is_asked(self):
        for asked in (request(), request(bytes=[8]), request(bytes=[0]), request(memory=["private"]),
                      request(memory=[]), request(peers=[])):
            drawn = plot.draw(report.points(times(asked), asked), asked)
            self.assertNotIn("nan", drawn)
            ElementTree.fromstring(drawn)


def point(ratio, **changes):
    usual = dict(collective="reduce", bytes=8 << 20, ranks=2, memory="private", transport="shm", collx_us=2.0,
                 peers_us={"openmpi": 9.0, "gloo": round(2 / ratio, 4)} if ratio else {}, ratio=ratio,
                 buffers="rotating", limit_us=1.0, algorithm="auto", place="out_of_place", rounds=3)
    return {**usual, **changes}


class Summary(unittest.TestCase):
    def test_the_mean_is_geometric_and_of_how_much_faster(self):
        self.assertAlmostEqual(summary.times_faster([point(0.125), point(0.5), point(None)]), 4)
        self.assertIsNone(summary.times_faster([point(None)]))

    def test_the_worst_come_first_with_their_best_peer(self):
        points = [point(0.5), point(1.2, bytes=512), point(1.04)]
        self.assertEqual([p["ratio"] for p in summary.worst(points, 2)], [1.2, 1.04])
        self.assertEqual([p["ratio"] for p in summary.slower(points)], [1.2])  # 1.04 is within the noise
        self.assertEqual(summary.worst_lines(points, 1),
                         ["  1.20  reduce 512 B, 2 ranks, private, rotating: 2.000 us, gloo 1.667 us"])

    def test_means_are_per_ranks_and_memory(self):
        points = [point(0.5), point(0.25, memory="symmetric"), point(2.0, ranks=4, buffers="hot")]
        rows = [line.split() for line in summary.means_table(points)[2:]]
        self.assertEqual([row[:3] for row in rows], [["2", "private", "2.00x"], ["2", "symmetric", "4.00x"],
                                                     ["4", "private", "0.50x"], ["all", "all", "1.59x"]])

    def test_the_limit_counts_where_memory_is_what_takes_time(self):
        lines = summary.limit_lines([point(0.5), point(0.5, bytes=8, limit_us=0.001)])
        self.assertEqual(lines[-1].split(), ["reduce", "2", "private", "rotating", "50", "%"])
        self.assertEqual(summary.limit_lines([point(0.5, limit_us=None)]), [])

    def test_a_limit_that_is_beaten_is_no_bound(self):
        points = [point(0.5, limit_us=2.2), point(0.5, bytes=32 << 20, limit_us=2.009)]
        said = "\n".join(summary.limit_lines(points))
        self.assertIn("limit beaten: it is no bound here:\n  reduce 8 MiB, 2 ranks, private, rotating (110 %)",
                      said)
        self.assertEqual(said.count("beaten"), 2)
        self.assertIn("100 %", said)
        self.assertNotIn("no bound", "\n".join(summary.limit_lines([point(0.5)])))

    def test_text_of_nothing_compared_is_no_table(self):
        self.assertEqual(summary.text([point(None, limit_us=None)], 5), "")


def whole(**changes):
    usual = dict(collectives=groups.COLLECTIVES, ranks=[2, 4], states=["rotating", "hot"], bytes=[8, 512],
                 memory=["private", "symmetric"], transport="shm", algorithm="auto", place="out_of_place",
                 rounds=1, congestion=None, network=None, real_time=False, peers=builds.PEERS)
    return SimpleNamespace(**{**usual, **changes})


class Groups(unittest.TestCase):
    def test_the_whole_table_has_every_group_once(self):
        found = groups.groups(whole(), ["openmpi", "gloo"])
        self.assertEqual(len({groups.key_of(group) for group in found}), 2 * (6 * 2 + 1))
        barriers = [group for group in found if group.collective == "barrier"]
        self.assertEqual([(g.bytes, g.memory) for g in barriers], [([0], ["private"])] * 2)
        self.assertEqual({g.place for g in found if g.collective == "broadcast"}, {"in_place"})

    def test_gloo_has_no_figure_where_it_has_no_collective(self):
        asked = whole(ranks=[2], states=["hot"])
        found = {group.collective: group.peers for group in groups.groups(asked, ["mpich", "gloo"])}
        self.assertEqual({group.collective for group in groups.groups(asked, ["mpich", "gloo"])
                          if group.absent == ["openmpi"]}, set(groups.COLLECTIVES))
        self.assertNotIn("gloo", next(group.absent for group in groups.groups(asked, [])
                                      if group.collective == "reduce_scatter"))
        self.assertEqual(found["reduce_scatter"], ["mpich"])
        self.assertEqual(found["all_to_all"], ["mpich", "gloo"])

    def test_a_table_is_continued_where_it_ended(self):
        group = groups.groups(whole(collectives=["all_reduce"], ranks=[2], states=["hot"]), ["mpich"])[0]
        usual = dict(collective="all_reduce", buffers="hot", peers_us={"mpich": 4})
        done = [point(0.5, bytes=size, memory=memory, **usual) for size in group.bytes for memory in group.memory]
        self.assertTrue(groups.is_covered(group, done))
        self.assertFalse(groups.is_covered(group, done[1:]))
        self.assertFalse(groups.is_covered(group, [dict(p, buffers="rotating") for p in done]))
        self.assertFalse(groups.is_covered(group, [dict(p, peers_us={}) for p in done]))
        self.assertFalse(groups.is_covered(group, [dict(p, mixed=True) for p in done]))
        other = point(0.5, bytes=32)
        self.assertEqual(groups.without(done + [other], group), [other])


class Programs(unittest.TestCase):
    built = builds.Built("/b", "/b/collx_perf", "/b/memory_limit", {p: f"/b/{p}" for p in builds.PEERS})

    def commands(self, **changes):
        group = groups.groups(whole(**{"ranks": [2], "states": ["hot"], **changes}), builds.PEERS)[0]
        return {launch.name: launch for launch in programs.launches(self.built, group)}

    def test_every_program_gets_the_same_question(self):
        found = self.commands(collectives=["reduce"])
        self.assertEqual(list(found), ["collx private", "collx symmetric", *builds.PEERS, "limit"])
        for name in [*builds.PEERS, "limit"]:
            line = " ".join(map(str, found[name].command))
            self.assertIn("reduce --bytes 8,512 --in-place 0 --pool 0", line)

    def test_mpi_is_told_to_yield_where_ranks_exceed_cores(self):
        found = self.commands(collectives=["reduce"], ranks=[100000])
        self.assertIn("mpi_yield_when_idle", found["openmpi"].command)
        self.assertIn("MPIR_CVAR_POLLS_BEFORE_YIELD", found["mpich"].environment)
        self.assertNotIn("mpi_yield_when_idle", self.commands(ranks=[1])["openmpi"].command)

    def test_mpi_shares_cores_only_where_ranks_exceed_them(self):
        usual, fits = programs.cores, programs.fits
        programs.fits = lambda group: True  # on two CPUs of one core
        try:
            for cores, wanted in ((1, "hwthread"), (2, "core")):
                programs.cores = lambda: cores
                for name, flag in (("openmpi", "--bind-to"), ("mpich", "-bind-to")):
                    command = self.commands(collectives=["reduce"])[name].command
                    self.assertEqual(command[command.index(flag) + 1], wanted)
                    self.assertEqual("--use-hwthread-cpus" in command, (cores, name) == (1, "openmpi"))
        finally:
            programs.cores, programs.fits = usual, fits

    def test_cores_are_counted_by_their_siblings(self):
        usual, os.sched_getaffinity = os.sched_getaffinity, lambda _: {0, 1, 2, 3}
        try:
            with tempfile.TemporaryDirectory() as folder:
                self.assertEqual(programs.cores(folder), 4)
                for cpu in range(4):
                    topology = os.path.join(folder, f"cpu{cpu}", "topology")
                    os.makedirs(topology)
                    with open(os.path.join(topology, "thread_siblings_list"), "w", encoding="ascii") as file:
                        file.write(f"{cpu % 2},{cpu % 2 + 2}\n")
                self.assertEqual(programs.cores(folder), 2)
        finally:
            os.sched_getaffinity = usual

    def test_over_tcp_every_peer_is_held_to_it(self):
        for ranks in (1, 100000):
            found = self.commands(transport="tcp", ranks=[ranks], memory=["private"])
            self.assertEqual(list(found), ["collx private", *builds.PEERS, "limit"])
            line = " ".join(map(str, found["openmpi"].command))  # None: not installed
            self.assertIn("btl tcp,self --mca btl_tcp_if_include lo", line)
            self.assertEqual(found["mpich"].environment["UCX_TLS"], "tcp,self")
            self.assertEqual(found["mpich"].environment["MPIR_CVAR_NOLOCAL"], "1")
            self.assertIn("tcp", found["collx private"].command)
        self.assertNotIn("limit", self.commands(transport="tcp", collectives=["reduce"]))
        self.assertNotIn("UCX_TLS", self.commands()["mpich"].environment)

    def test_ranks_with_real_time_priority_are_below_their_launchers(self):
        self.assertLess(programs.RANK_PRIORITY, programs.LAUNCHER_PRIORITY)
        for launch in self.commands(real_time=True, ranks=[1]).values():
            self.assertIn("chrt --rr 5 /b/", " ".join(map(str, launch.command)))
        for launch in self.commands(real_time=True, ranks=[100000]).values():
            self.assertIn("chrt --other 0 /b/", " ".join(map(str, launch.command)))

    def test_a_barrier_has_no_limit(self):
        self.assertNotIn("limit", self.commands(collectives=["barrier"]))

    def test_a_folder_that_cannot_be_made_is_named(self):
        with self.assertRaisesRegex(builds.Missing, "cannot make /proc/nowhere: .*--build"):
            builds.prepare(SimpleNamespace(build="/proc/nowhere"))

    def test_an_absent_peer_is_left_out_with_advice_unless_it_was_named(self):
        installed, own = builds.is_installed, builds.build_own
        targets = []
        builds.is_installed, builds.build_own = lambda peer: False, lambda folder, own, over_tcp: targets.extend(own)
        try:
            with tempfile.TemporaryDirectory() as folder:
                asked = SimpleNamespace(build=folder, peers=["gloo"], peers_are_named=False, memory=[],
                                        limit=False, transport="shm")
                built = builds.prepare(asked)
                self.assertEqual(built.peers, {})
                self.assertEqual(targets, [])  # peers alone need no CMake
                self.assertEqual(built.notes, ["gloo is not installed and left out: run  apt-get install "
                                               "libgloo-dev g++"])
                asked.peers_are_named = True
                with self.assertRaisesRegex(builds.Missing, "gloo is not installed: run .* or leave it out"):
                    builds.prepare(asked)
        finally:
            builds.is_installed, builds.build_own = installed, own


class Overview(unittest.TestCase):
    def test_is_well_formed_whatever_was_measured(self):
        barrier = point(0.5, collective="barrier", bytes=0)
        for points in ([point(0.5)], [barrier], [barrier, point(100.0, ranks=8), point(0.001, buffers="hot")],
                       [point(0.5), point(0.25, buffers="fresh"), point(0.25, bytes=8, buffers="fresh")],
                       [point(None)]):
            drawn = overview.draw(points)
            self.assertNotIn("nan", drawn)
            ElementTree.fromstring(drawn)


class Bar(unittest.TestCase):
    def test_says_the_time_left(self):
        seconds, out = [0.0], io.StringIO()
        bar = Progress(4, out, lambda: seconds[0])
        bar.step("all_reduce, 2 ranks, hot", "mpich")
        seconds[0] = 30.0
        bar.step("all_reduce, 2 ranks, hot", "gloo")
        self.assertIn(" 25 % all_reduce, 2 ranks, hot: gloo  1 min 30 s left", out.getvalue())


class Rounds(unittest.TestCase):
    def launch(self, script, name="fake"):
        return SimpleNamespace(name=name, command=[sys.executable, "-c", script], json_path="", memory="",
                               environment={})

    def test_a_peer_that_fails_is_left_out_and_named(self):
        out = io.StringIO()
        line = '{"bytes": 8, "median_us": 1.5, "wrong": 0}'
        launches = [self.launch(f"print('{line}')", "mpich"), self.launch("import sys; sys.exit(3)", "gloo")]
        found = rounds.run(launches, request(bytes=[8], rounds=2), Progress(1, out))
        self.assertEqual(dict(found.times["mpich"]), {8: [1.5, 1.5]})
        self.assertNotIn("gloo", found.times)
        self.assertEqual(found.failed, ["gloo"])
        self.assertIn("gloo is left out of all_reduce, 2 ranks, rotating: gloo ended with 3", out.getvalue())

    def test_collx_may_not_fail(self):
        failing = self.launch("import sys; sys.exit(3)", "collx private")
        failing.memory = "private"
        with self.assertRaisesRegex(rounds.Failed, "collx private ended with 3"):
            rounds.run([failing], request(bytes=[8]), Progress(1, io.StringIO()))

    def test_points_are_found_among_a_launchers_chatter(self):
        self.assertEqual(rounds.lines("warning: no network\n{\"bytes\": 8}\nbye\n"), [{"bytes": 8}])

    def test_a_failing_program_is_named_with_what_it_said(self):
        with self.assertRaisesRegex(rounds.Failed, "fake ended with 3.*\n.*no luck"):
            fails = self.launch("import sys; sys.exit(print('no luck', file=sys.stderr) or 3)")
            rounds.measure(fails, request())

    def test_nothing_of_a_program_outlives_it(self):
        leaves = "setsid sh -c 'sleep 1000 & wait' > /dev/null 2>&1 & echo $!"
        launch = SimpleNamespace(name="fake", command=["sh", "-c", leaves], environment={})
        known = rounds.children()
        left = int(rounds.start(launch, 30))
        with self.assertRaises(ProcessLookupError):
            os.kill(left, 0)
        self.assertEqual(rounds.children(), known)

    def test_a_missing_size_is_noticed(self):
        with self.assertRaisesRegex(rounds.Failed, "answered 0 of 3 sizes"):
            rounds.measure(self.launch("pass"), request())

    def test_wrong_results_are_no_results(self):
        line = '{"bytes": 8, "median_us": 1.0, "wrong": 1}'
        with self.assertRaisesRegex(rounds.Failed, "wrong results"):
            rounds.measure(self.launch(f"print('{line}')"), request(bytes=[8]))

    def test_a_peer_that_has_said_all_need_not_end(self):
        usual, rounds.SECONDS_TO_END = rounds.SECONDS_TO_END, 0.1
        line = '{"bytes": 8, "median_us": 1.5, "wrong": 0}'
        lingers = self.launch(f"import time; print('{line}', flush=True); time.sleep(100)")
        try:
            self.assertEqual(rounds.measure(lingers, request(bytes=[8]))[0]["median_us"], 1.5)
        finally:
            rounds.SECONDS_TO_END = usual

    def test_a_program_that_hangs_is_ended(self):
        with self.assertRaisesRegex(rounds.Failed, "did not end within 0.5 s"):
            rounds.start(self.launch("import time; time.sleep(100)"), 0.5)


if __name__ == "__main__":
    unittest.main()
