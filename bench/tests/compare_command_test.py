# SPDX-License-Identifier: Apache-2.0
"""Tests of what bench/compare, and the two beside it, take on their command lines, and refuse."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, BENCH)

from compare_test import point  # noqa: E402
from comparing import algorithms, groups, report  # noqa: E402


class CommandLine(unittest.TestCase):
    def refuse(self, arguments, words, program="compare", code=2):
        command = [sys.executable, os.path.join(BENCH, program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(words, done.stderr)

    def test_bad_input_is_refused_with_advice(self):
        self.refuse(["--bytes", "8,12Q"], "wants sizes such as 8,32K,1M and got '12Q'")
        self.refuse(["--ranks", "0"], "wants a whole number, 1 or more")
        self.refuse(["--memory", "borrowed"], "say some of private,symmetric")
        self.refuse(["--collective", "all_to_none"], "all_reduce")
        for flag in ("--buffers", "--state"):
            self.refuse([flag, "hot,cold"], "does not know 'cold'; say some of rotating,hot,fresh")
        self.refuse(["--resume"], "want --json FILE")
        self.refuse(["--congestion", "cubic"], "want --transport tcp")
        self.refuse(["--veth"], "want --transport tcp")
        self.refuse(["--transport", "tcp", "--shape", "netem delay 1ms"], "wants --veth")
        self.refuse(["--transport", "composite", "--ranks", "3"], "as many ranks on each")
        self.refuse(["--transport", "composite", "--hosts", "1"], "--hosts 2 or more")
        self.refuse(["--json", "/nowhere/to/be/found.json"], "a folder that exists")
        self.refuse(["--json", "/tmp"], "it is a folder")
        self.refuse(["--ranks", "100000"], "at most 1024 ranks")
        self.refuse(["--bytes", "99999999G"], "sizes up to 16G")
        self.refuse(["--collective", "allreduce"], "did you mean all_reduce?")
        self.refuse(["--only", "collx", "--peers", "openmpi"], "give one of the two")
        self.refuse(["--all", "--build", "/proc/nowhere"], "/proc/nowhere/compare_all.json, and the folder")
        self.refuse(["--algorithm", "nosuch"], "no algorithm 'nosuch' for all_reduce; say one of: auto, sel")
        self.refuse(["--algorithm", "bruck_2", "--collective", "reduce,broadcast"],
                    "no algorithm 'bruck_2' for reduce, broadcast; say")

    def test_so_do_the_programs_beside_it(self):
        self.refuse(["--json", "/nowhere/to/be/found.json"], "a folder that exists", "several_paths", code=1)
        self.refuse(["--compilers", "nosuch++,c++"], "there is no nosuch++; install it", "compile_time")

    def test_algorithms_are_those_of_their_collectives(self):
        def named(*collectives, transport="shm"):
            return algorithms.names(SimpleNamespace(collectives=list(collectives), transport=transport))
        self.assertIn("knomial_tree_4", named("all_reduce"))
        self.assertNotIn("pairwise", named("all_reduce"))
        self.assertIn("pairwise", named("all_reduce", "all_to_all"))
        self.assertTrue({"dissemination", "ring"} < set(named("barrier")))
        for collective in groups.COLLECTIVES:
            self.assertGreater(len(named(collective)), 3)
        # Not known, and left to collx_perf.
        self.assertEqual(named("all_reduce", transport="composite"), [])
        asked = SimpleNamespace(collectives=["reduce"], transport="shm")
        self.assertEqual(algorithms.names(asked, "/nowhere"), [])

    def test_a_file_that_may_not_be_written_to_is_refused_before_anything_is_measured(self):
        usual = os.access
        with tempfile.NamedTemporaryFile() as file:
            report.require_writable(file.name)
            # Root may write to it whatever its mode is.
            os.access = lambda path, mode: path != file.name and usual(path, mode)
            try:
                with self.assertRaisesRegex(report.Unwritable, "the file may not be written to"):
                    report.require_writable(file.name)
                report.require_writable(file.name + ".json")
            finally:
                os.access = usual

    def test_an_earlier_run_is_summed_up_and_drawn_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "points.json")
            report.write_json([point(0.5), point(0.125, ranks=4)], path)
            command = [sys.executable, os.path.join(BENCH, "compare"), "--redraw", "--json", path]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            self.assertIn("4.00x", done.stdout)
            ElementTree.parse(os.path.join(folder, "points.svg"))
            with open(path, encoding="utf-8") as file:
                self.assertEqual(len(json.load(file)), 2)

    def redraw(self, points, *more):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "points.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(points, file)
            command = [sys.executable, os.path.join(BENCH, "compare"), "--redraw", "--json", path, *more]
            return subprocess.run(command, capture_output=True, text=True)

    def test_what_holds_no_points_is_refused(self):
        for found in ({"a": 1}, [{"a": 1}], [1], 3):
            done = self.redraw(found)
            self.assertEqual(done.returncode, 2)
            self.assertIn("something else than points of bench/compare", done.stderr)

    def test_what_is_drawn_again_can_be_narrowed(self):
        points = [point(0.5), point(0.125, ranks=4), point(0.25, collective="all_reduce", ranks=4)]
        done = self.redraw(points, "--ranks", "4", "--collective", "reduce,all_gather")
        self.assertEqual(done.returncode, 0)
        self.assertIn("8.00x", done.stdout)
        self.assertNotIn("all_reduce", done.stdout)


class Endings(unittest.TestCase):
    ENDS = ("import os, signal\nfrom comparing import programs\nprograms.end_in_order()\n"
            "try:\n    os.kill(os.getpid(), signal.{})\n    print('goes on')\nfinally:\n    print('in order')\n")

    def run_ending(self, name, **how):
        return subprocess.run([sys.executable, "-c", self.ENDS.format(name)], cwd=BENCH, capture_output=True,
                              text=True, **how)

    def test_what_was_set_up_is_ended(self):
        for name in ("SIGTERM", "SIGHUP"):
            done = self.run_ending(name)
            self.assertEqual((done.returncode, done.stdout), (143, "in order\n"), done.stderr)

    def test_started_by_nohup_it_goes_on(self):
        done = self.run_ending("SIGHUP", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual((done.returncode, done.stdout), (0, "goes on\nin order\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
