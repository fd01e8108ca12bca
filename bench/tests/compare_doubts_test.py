# SPDX-License-Identifier: Apache-2.0
"""Tests of what bench/compare says against its own figures, and of what it is required to reach."""
import argparse
import contextlib
import importlib.machinery
import io
import os
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, BENCH)

from compare_test import request, times  # noqa: E402
from comparing import builds, doubts, origin, report, require, rounds  # noqa: E402

NOW = {"commit": "abc", "cpu": "fast one", "date": "2026-11-25"}


def point(ratio=0.5, **changes):
    usual = dict(collective="reduce", bytes=8 << 20, ranks=2, memory="private", transport="shm", collx_us=2.0,
                 peers_us={"openmpi": 2 / ratio, "gloo": 99.0}, ratio=ratio, buffers="rotating",
                 limit_us=1.0,
                 algorithm="auto", place="out_of_place", rounds=3, collx_range_us=[1.9, 2.1],
                 peers_range_us={"openmpi": [2 / ratio, 2.2 / ratio], "gloo": [9.0, 99.0]})
    return {**usual, **changes}


def compare(*arguments, points):
    """Its exit code and what it said, on points that are there."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "points.json")
        report.write_json(points, path)
        command = [sys.executable, os.path.join(BENCH, "compare"), "--json", path, "--plot", "none", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class Failure(unittest.TestCase):
    def test_a_peer_that_fails_is_no_success(self):
        loader = importlib.machinery.SourceFileLoader("compare", os.path.join(BENCH, "compare"))
        program = types.ModuleType("compare")
        program.__file__ = loader.path
        loader.exec_module(program)
        asked = types.SimpleNamespace(transport="shm", real_time=False, resume=False, json=None)
        with mock.patch.multiple(program.builds, prepare=lambda _: builds.Built("")), \
                mock.patch.multiple(program.groups, groups=lambda *_: [request(bytes=[8])]), \
                mock.patch.multiple(program.programs, launches=lambda *_: []), \
                mock.patch.multiple(program.rounds, run=lambda *_: measured), \
                contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for failed in ([], ["mpich"]):
                measured, points = rounds.Measured(times(request(bytes=[8])), False, failed), []
                self.assertEqual(program.measure(asked, points), not failed)
                self.assertEqual([p["bytes"] for p in points], [8, 8])
                self.assertLessEqual({"commit", "cpu", "date"}, points[0].keys())


class Doubts(unittest.TestCase):
    def test_nothing_is_said_where_there_is_nothing_to_say(self):
        self.assertEqual(doubts.lines([point(), point(bytes=8)]), [])
        self.assertEqual(doubts.lines([]), [])

    def test_points_that_lack_a_peer_are_counted(self):
        alone = {"openmpi": 4.0}
        points = [point(), point(peers_us=alone), point(collective="reduce_scatter", peers_us=alone),
                  point(lacks=["mpich"])]
        self.assertEqual(doubts.lacking(points),
                         "points without a peer, of 4: gloo 1 (failed, or not installed); "
                         "gloo 1 (has no such collective); mpich 4 (failed, or not installed)")

    def test_mixed_points_and_few_rounds_are_counted(self):
        points = [point(), point(mixed=True), point(rounds=2)]
        self.assertIn("mixed, and in no mean: 1 of 3 points", doubts.lines(points)[0])
        self.assertEqual(doubts.few_rounds(points),
                         "points that rest on fewer rounds than the others' 3: 1 on 2")

    def test_rounds_that_disagree_are_counted(self):
        wide = {"openmpi": [2.0, 4.0], "gloo": [99.0, 99.0]}
        points = [point(), point(collx_range_us=[1.0, 1.6]), point(peers_range_us=wide)]
        self.assertIn("differ by more than 1.5 times: 2 of 3", doubts.scattered(points))

    def test_a_summary_says_them(self):
        code, said, _ = compare("--redraw", points=[point(lacks=["mpich"], **NOW)])
        self.assertEqual(code, 0)
        self.assertIn("times faster than the best of gloo, openmpi", said)
        self.assertIn("mpich 1 (failed, or not installed)", said)
        self.assertIn("commit abc; fast one; 2026-11-25", said)
        self.assertIn("1 of 1 points", compare("--redraw", points=[point(mixed=True)])[1])


class Origin(unittest.TestCase):
    def test_points_say_where_they_come_from(self):
        here = origin.here()
        self.assertRegex(here["date"], r"^\d{4}-\d\d-\d\d$")
        self.assertRegex(here["commit"], r"^[0-9a-f]{10,}(\+[0-9a-f]{8})?$|^unknown$")

    def test_a_processor_is_its_name_and_its_family(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\n"
                       "processor\t: 1\nmodel name\t: another\n")
            file.flush()
            self.assertEqual(origin.cpu(file.name), "AMD EPYC, family 26, model 2")
        self.assertEqual(origin.cpu("/nowhere"), "unknown")

    def test_points_from_elsewhere_are_not_continued(self):
        origin.require_same([point(**NOW)], NOW)
        for other in (dict(NOW, commit="abd"), dict(NOW, cpu="slow one"), {}):
            with self.assertRaisesRegex(origin.Mixture, "--mix"):
                origin.require_same([point(**NOW), point(**other)], NOW)
        origin.require_same([point(**dict(NOW, date="2026-11-24"))], NOW)

    def test_resume_refuses_a_mixture_before_it_builds(self):
        code, _, said = compare("--resume", points=[point()])
        self.assertEqual(code, 2)
        self.assertIn("are of commit nobody knows which on nobody knows which, and this is ", said)

    def test_a_mixture_is_told(self):
        self.assertEqual(origin.line([point()]), "")
        other = point(**dict(NOW, commit="abd"))
        self.assertIn("abc and abd; fast one; 2026-11-25 (mixed", origin.line([point(**NOW), other]))
        self.assertIn("abc and not noted", origin.line([point(**NOW), point()]))


class Require(unittest.TestCase):
    small = dict(collective="all_reduce", bytes=8, limit_us=0.001)

    def unmet(self, text, *points):
        return require.unmet(list(points), require.wishes(text))

    def test_what_is_reached_is_silent(self):
        self.assertEqual(self.unmet("mean=2,slower=0,small=2,limit=0.5", point(), point(**self.small)), [])

    def test_each_wish_that_is_missed_has_a_line(self):
        missed = self.unmet("mean=2,slower=0,small=2,limit=0.85", point(1.06), point(0.6, **self.small))
        self.assertEqual(missed,
                         ["1.254 times faster in the geometric mean; required: at least 2",
                          "1 points slower than the best peer by more than the noise; required: at most 0",
                          "1.667 times faster in the slowest all_reduce of 8 B; required: at least 2",
                          "0.5 of the limit in the point furthest from it; required: at least 0.85"])

    def test_within_the_noise_is_not_slower(self):
        self.assertEqual(self.unmet("slower=0", point(1.05)), [])

    def test_a_wish_can_be_of_one_memory(self):
        points = [point(0.25, memory="symmetric"), point(1.0)]
        self.assertEqual(self.unmet("symmetric.mean=4", *points), [])
        self.assertEqual(len(self.unmet("private.mean=4,mean=4", *points)), 2)

    def test_a_wish_can_be_of_one_collective(self):
        points = [point(), point(0.25, memory="symmetric", collective="all_gather", collx_us=1.1)]
        self.assertEqual(self.unmet("symmetric.all_gather.limit=0.9,all_gather.mean=4", *points), [])
        self.assertEqual(self.unmet("reduce.private.mean=4", *points),
                         ["reduce private memory: 2 times faster in the geometric mean; required: at least 4"])
        for wrong in ("all_gather.reduce.mean=4", "nothing.mean=4", "private.symmetric.mean=4"):
            with self.assertRaises(argparse.ArgumentTypeError):
                require.wishes(wrong)

    def test_what_cannot_be_judged_is_not_reached(self):
        self.assertIn("nothing to judge by", self.unmet("small=1", point())[0])
        self.assertIn("nothing to judge by", self.unmet("slower=0")[0])
        self.assertIn("1 points are mixed", self.unmet("slower=0", point(), point(mixed=True))[0])

    def test_the_exit_code_says_it(self):
        self.assertEqual(compare("--redraw", "--require", points=[point()])[0], 0)
        code, _, said = compare("--redraw", "--require", points=[point(1.2)])
        self.assertEqual(code, 3)
        self.assertIn("required: at most 0", said)
        code, _, said = compare("--redraw", "--require", "median=2", points=[point()])
        self.assertEqual(code, 2)
        self.assertIn("wants such as mean=2", said)


class Method(unittest.TestCase):
    def test_nobody_divides_per_call(self):
        """Whose turn a buffer is, method_next() says, to everybody."""
        loops = {"perf/timing.hpp": 1, "plain/timing.hpp": 1, "peers/mpi_perf.c": 2}  # of calls, fresh or not
        for name in [*loops, "perf/case.cpp", "peers/gloo_perf.cpp", "limit/main.cpp", "limit/sockets.cpp"]:
            with open(os.path.join(builds.BENCH, name), encoding="utf-8") as file:
                self.assertNotRegex(file.read(), r"\b(turns?|slot|i) % ", name)
        for name, count in loops.items():
            with open(os.path.join(builds.BENCH, name), encoding="utf-8") as file:
                self.assertEqual(file.read().count("method_next("), count, name)


if __name__ == "__main__":
    unittest.main()
