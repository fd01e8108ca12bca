# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/compare over TCP: that it is TCP, between which hosts, and under which congestion control."""
import io
import os
import socket
import sys
import unittest
from types import SimpleNamespace

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, BENCH)

from compare_test import request, times  # noqa: E402
from comparing import groups, hosts, network, programs, report, rounds, summary  # noqa: E402
from comparing.progress import Progress  # noqa: E402


class Network(unittest.TestCase):
    def test_who_does_not_use_tcp_is_left_out(self):
        out = io.StringIO()
        line = '{"bytes": 8, "median_us": 1.5, "wrong": 0}'
        silent = SimpleNamespace(name="mpich", command=["echo", line], json_path="", memory="", environment={})
        counted, network.carried_bytes = network.carried_bytes, lambda: 5
        try:
            found = rounds.run([silent], request(bytes=[8], rounds=2, transport="tcp"), Progress(1, out))
        finally:
            network.carried_bytes = counted
        self.assertEqual(dict(found.times), {})
        self.assertIn("mpich did not use TCP: lo carried 0 bytes while it ran", out.getvalue())

    def test_the_bytes_of_lo_are_counted(self):
        before = network.carried_bytes()
        with socket.create_server(("127.0.0.1", 0)) as door, socket.create_connection(door.getsockname()) as near:
            far = door.accept()[0]
            near.sendall(bytes(4096))
            self.assertEqual(len(far.recv(4096, socket.MSG_WAITALL)), 4096)
            far.close()
        self.assertGreaterEqual(network.carried_bytes() - before, 4096)
        self.assertGreater(network.least_bytes(request(bytes=[1 << 20])), 5 << 19)

    def test_points_say_between_which_hosts(self):
        asked = request(transport="tcp", congestion="reno", network="veth", bytes=[8])
        points = report.points(times(asked), asked)
        self.assertEqual({p["network"] for p in points}, {"veth"})
        self.assertIn("over veth", report.title(asked))
        self.assertNotEqual(groups.key(points[0]), groups.key(dict(points[0], network=None)))
        self.assertNotIn("network", report.points(times(asked), request(bytes=[8]))[0])

    def test_without_hosts_of_their_own_ranks_are_told_nothing(self):
        self.assertEqual(hosts.environment(), {})
        self.assertEqual(programs.interface(), "lo")

    def test_ranks_with_hosts_of_their_own_enter_them(self):
        hosts._hosts.extend(["made-0", "made-1"])
        try:
            told = hosts.environment()
            self.assertEqual(told["COLLX_BENCH_HOSTS"], "/run/netns/made-%d")
            self.assertGreaterEqual(len(told["COLLX_SECRET"]), 16)
            self.assertEqual(programs.mpich_environment(request(transport="tcp"))["UCX_NET_DEVICES"], "v0")
            self.assertIn('made-"$PMI_RANK"', " ".join(hosts.wrapper("PMI_RANK")))
        finally:
            hosts._hosts.clear()

    def test_points_say_which_congestion_control(self):
        asked = request(transport="tcp", congestion="reno", bytes=[8])
        points = report.points({**times(asked), "limit": {8: [0.5]}}, asked)
        self.assertEqual({p["congestion"] for p in points}, {"reno"})
        self.assertIn("tcp (reno)", report.table(points, asked))
        self.assertIn("share of plain sockets' limit", "\n".join(summary.limit_lines(points)))
        self.assertNotEqual(groups.key(points[0]), groups.key(dict(points[0], congestion="cubic")))


if __name__ == "__main__":
    unittest.main()
