# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/compare with fresh inputs: asked for, told to every program, said beside the figures."""
import importlib.machinery
import importlib.util
import os
import sys
import unittest
from types import SimpleNamespace
from unittest import mock

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, BENCH)

from compare_test import point, request, times, whole  # noqa: E402
from comparing import builds, groups, programs, report, rounds, summary  # noqa: E402


def commands(**changes):
    """name -> the words that start it."""
    built = builds.Built("/b", "/b/collx_perf", "/b/memory_limit", {peer: f"/b/{peer}" for peer in builds.PEERS})
    group = groups.groups(whole(**{"ranks": [2], **changes}), builds.PEERS)[0]
    return {launch.name: " ".join(map(str, launch.command)) for launch in programs.launches(built, group)}


def parsed(*arguments):
    loader = importlib.machinery.SourceFileLoader("compare_program", os.path.join(BENCH, "compare"))
    program = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(program)
    with mock.patch.object(sys, "argv", ["bench/compare", "--json", "points.json", *arguments]):
        return program.parse_arguments()


class Fresh(unittest.TestCase):
    def test_fresh_inputs_are_said_in_the_points_and_above_the_table(self):
        asked = request(state="fresh")
        points = report.points(times(asked), asked)
        self.assertEqual({p["buffers"] for p in points}, {"fresh"})
        self.assertIn("fresh buffers: microseconds", report.table(points, asked))
        self.assertIn("what writing alone takes is taken off", report.table(points, asked))
        self.assertNotIn("writing", report.table(report.points(times(request()), request()), request()))

    def test_each_state_has_its_mean(self):
        points = [point(0.5), point(0.25, buffers="fresh"), point(0.125, buffers="hot")]
        lines = summary.means_table(points)
        self.assertEqual(lines[0].split()[4:7], ["rotating", "hot", "fresh"])
        self.assertEqual(lines[-1].split()[3:6], ["2.00x", "8.00x", "4.00x"])

    def test_every_program_is_told_to_write_fresh_inputs(self):
        found = commands(collectives=["reduce"], states=["fresh"])
        self.assertEqual(list(found), ["collx private", "collx symmetric", *builds.PEERS])  # no limit is known
        for peer in builds.PEERS:
            self.assertIn("--in-place 0 --fresh 1", found[peer])
        for memory in ("private", "symmetric"):
            self.assertIn("--state fresh", found[f"collx {memory}"])
        self.assertNotIn("limit", commands(transport="tcp", states=["fresh"]))
        for state in groups.ALL_STATES:
            self.assertNotIn("--fresh", commands(states=[state])["mpich"])

    def test_a_call_that_cannot_be_told_from_the_writing_is_no_result(self):
        for us in ("0.0", "-1.5"):
            line = f'{{"bytes": 8, "median_us": {us}, "wrong": 0}}'
            with self.assertRaisesRegex(rounds.Failed, "cannot be told from the writing"):
                rounds.measure(SimpleNamespace(name="fake", command=["echo", line], json_path="", environment={}),
                               request(bytes=[8]))

    def test_fresh_inputs_are_measured_where_they_are_asked_for(self):
        self.assertEqual(parsed("--all").states, ["rotating", "hot"])
        self.assertEqual(parsed().states, ["rotating"])
        self.assertEqual(parsed("--buffers", "fresh,hot").states, ["fresh", "hot"])
        self.assertEqual(parsed("--all", "--state", "fresh").states, ["fresh"])


if __name__ == "__main__":
    unittest.main()
