# SPDX-License-Identifier: Apache-2.0
"""Tests of what bench/compare does where the processors of a virtual machine are moved."""
import io
import os
import sys
import unittest
from types import SimpleNamespace

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, BENCH)

from comparing import distance, programs, report, rounds  # noqa: E402
from comparing.progress import Progress  # noqa: E402


class Moved(distance.Distance):
    """Processors as far apart as it is told, one answer after the other, and then near."""

    def __init__(self, *ns):
        super().__init__("asks nobody", sleep=lambda _: None)
        self.answers = list(ns)

    def ask(self, group):
        return self.answers.pop(0) if self.answers else 40.0


class Apart(unittest.TestCase):
    group = SimpleNamespace(ranks=2)
    three_rounds = SimpleNamespace(collective="barrier", ranks=2, transport="shm", bytes=[8], rounds=3)

    def setUp(self):
        usual, programs.processors = programs.processors, lambda: 2
        self.addCleanup(setattr, programs, "processors", usual)

    def measured(self, apart):
        """How often a program ran, and what counts."""
        runs = []
        found = apart.steadily(lambda: runs.append(len(runs) + 1) or len(runs), self.group)
        return len(runs), *found

    def test_what_stays_is_measured_once(self):
        self.assertEqual(self.measured(apart := Moved(40, 55)), (1, 1, 55))
        self.assertEqual(apart.note(), "")

    def test_a_program_during_which_they_moved_runs_again(self):
        self.assertEqual(self.measured(apart := Moved(40, 160, 41, 42)), (2, 2, 42))
        self.assertEqual(apart.note(), "processors moved apart during 1 programs, which were run again")

    def test_a_program_waits_for_them(self):
        apart = Moved(40, 40, 160, 160, 41)
        self.measured(apart)
        self.assertEqual(self.measured(apart), (1, 1, 41))

    def test_where_they_stay_far_that_is_near(self):
        apart = Moved(40, 40, *[160] * (distance.SECONDS_TO_SETTLE + 1))
        self.measured(apart)
        self.assertEqual(self.measured(apart), (1, 1, 160))

    def test_who_cannot_say_is_asked_once_and_named(self):
        apart = distance.Distance("/bin/false")
        self.group.real_time = False
        self.assertEqual(self.measured(apart), (1, 1, None))
        self.assertEqual(self.measured(apart), (1, 1, None))
        self.assertIn("'/bin/false', '--ranks', '2'", apart.note())

    def test_it_ends_where_they_never_stay(self):
        apart = Moved(*[40, 160] * distance.TRIES)
        self.assertEqual(self.measured(apart), (distance.TRIES, distance.TRIES, 160))
        self.assertEqual(apart.note(), "processors moved apart during 1 programs, which were run again; "
                                       "1 of them were taken as they were in the end")

    def test_ranks_that_share_processors_are_on_all_of_them(self):
        asked = distance.Distance("/bin/false")
        asked.steadily(lambda: None, SimpleNamespace(ranks=4, real_time=False))
        self.assertIn("'/bin/false', '--ranks', '2'", asked.note())

    def test_nobody_asks_where_there_is_one_processor(self):
        programs.processors = lambda: 1
        self.assertEqual(self.measured(Moved(160)), (1, 1, None))

    def test_near_samples_are_compared_with_near_ones(self):
        near, far = (1.0, 40), (3.0, 160)
        self.assertEqual(distance.alike({"a": {8: [near, far]}, "b": {8: [far, near, near]}}),
                         ({"a": {8: [1.0]}, "b": {8: [1.0, 1.0]}}, False))

    def test_far_samples_are_compared_with_far_ones(self):
        near, far = (1.0, 40), (3.0, 160)
        self.assertEqual(distance.alike({"a": {8: [near, far]}, "b": {8: [far]}}),
                         ({"a": {8: [3.0]}, "b": {8: [3.0]}}, False))

    def test_what_has_no_distance_in_common_is_mixed(self):
        near, far, unasked = (1.0, 40), (3.0, 160), (2.0, None)
        self.assertEqual(distance.alike({"a": {8: [near, near]}, "b": {8: [far]}}),
                         ({"a": {8: [1.0, 1.0]}, "b": {8: [3.0]}}, True))
        self.assertTrue(distance.alike({"a": {8: [near]}, "b": {8: [unasked]}})[1])

    def test_where_nobody_asks_all_is_alike(self):
        self.assertEqual(distance.alike({"a": {8: [(2.0, None)]}}), ({"a": {8: [2.0]}}, False))
        self.assertEqual(distance.alike({}), ({}, False))

    def test_rounds_drop_what_was_measured_far_apart(self):
        line = "{'bytes': 8, 'median_us': us, 'wrong': 0}"
        program = f"import json, time; us = time.monotonic(); print(json.dumps({line}))"
        launch = SimpleNamespace(name="fake", command=[sys.executable, "-c", program], memory="", json_path="",
                                 environment={})
        # A first round that moves whenever it is tried, and two that stay.
        apart = Moved(*[40, 160] * distance.TRIES)
        found = rounds.run([launch], self.three_rounds, Progress(1, io.StringIO()), apart)
        self.assertEqual(len(found.times["fake"][8]), 2)
        self.assertFalse(found.is_mixed)
        self.assertEqual(report.rounds_kept(found.times, SimpleNamespace(rounds=3), 8), 2)

    def test_rounds_say_when_one_program_was_always_far(self):
        line = "{\"bytes\": 8, \"median_us\": 1.5, \"wrong\": 0}"
        launches = [SimpleNamespace(name=name, command=["echo", line], memory="", json_path="", environment={})
                    for name in ("a", "b")]
        apart = Moved(40, 40, *[40, 160] * distance.TRIES)
        one_round = SimpleNamespace(**{**vars(self.three_rounds), "rounds": 1})
        found = rounds.run(launches, one_round, Progress(1, io.StringIO()), apart)
        self.assertTrue(found.is_mixed)


if __name__ == "__main__":
    unittest.main()
