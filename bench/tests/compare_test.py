# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/compare that need no MPI: its points, table, plot, and refusals."""
import os
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, BENCH)

from comparing import plot, report, rounds  # noqa: E402


def request(**changes):
    usual = dict(collective="all_reduce", ranks=2, transport="shm", memory=["private", "symmetric"],
                 peers=["openmpi", "mpich"], bytes=[0, 8, 1 << 20], algorithm="auto", place="out_of_place",
                 state="rotating", rounds=3)
    return SimpleNamespace(**{**usual, **changes})


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
        wanted = {"collective", "bytes", "ranks", "memory", "transport", "collx_us", "peers_us", "ratio"}
        self.assertTrue(wanted <= points[0].keys())
        self.assertEqual(points[2]["peers_us"].keys(), {"openmpi", "mpich"})

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


class Rounds(unittest.TestCase):
    def launch(self, script):
        return SimpleNamespace(name="fake", command=[sys.executable, "-c", script], json_path="")

    def test_a_failing_program_is_named_with_what_it_said(self):
        with self.assertRaisesRegex(rounds.Failed, "fake ended with 3.*\n.*no luck"):
            fails = self.launch("import sys; sys.exit(print('no luck', file=sys.stderr) or 3)")
            rounds.measure(fails, request())

    def test_a_missing_size_is_noticed(self):
        with self.assertRaisesRegex(rounds.Failed, "answered 0 of 3 sizes"):
            rounds.measure(self.launch("pass"), request())

    def test_wrong_results_are_no_results(self):
        line = '{"bytes": 8, "median_us": 1.0, "wrong": 1}'
        with self.assertRaisesRegex(rounds.Failed, "wrong results"):
            rounds.measure(self.launch(f"print('{line}')"), request(bytes=[8]))

    def test_a_program_that_hangs_is_ended(self):
        with self.assertRaisesRegex(rounds.Failed, "did not end within 0.5 s"):
            rounds.start(self.launch("import time; time.sleep(100)"), 0.5)


class CommandLine(unittest.TestCase):
    def refuse(self, arguments, words):
        command = [sys.executable, os.path.join(BENCH, "compare"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(words, done.stderr)

    def test_bad_input_is_refused_with_advice(self):
        self.refuse(["--bytes", "8,12Q"], "wants sizes such as 8,32K,1M and got '12Q'")
        self.refuse(["--ranks", "0"], "wants a whole number, 1 or more")
        self.refuse(["--memory", "borrowed"], "say some of private,symmetric")
        self.refuse(["--collective", "all_to_none"], "all_reduce")
        self.refuse(["--json", "/nowhere/to/be/found.json"], "a folder that exists")


if __name__ == "__main__":
    unittest.main()
