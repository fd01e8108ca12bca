# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/compare over TCP: that it is TCP, between which hosts, and under which congestion control."""
import errno
import io
import os
import shutil
import socket
import subprocess
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

    def test_ranks_of_composite_share_hosts_with_all_programs(self):
        asked = request(transport="composite", ranks=4, hosts=2, network="2 hosts, veth", congestion="bbr", bytes=[8])
        built = SimpleNamespace(folder="", collx="collx_perf", limit="", peers={"openmpi": "a", "mpich": "b", "gloo": "c"})
        asked.peers = ["openmpi", "mpich", "gloo"]
        hosts._hosts.extend(["made-0", "made-1"])
        try:
            launches = {launch.name: launch for launch in programs.launches(built, asked)}
        finally:
            hosts._hosts.clear()
        for name in ("collx private", "gloo"):
            self.assertEqual(launches[name].environment["COLLX_BENCH_RANKS_PER_HOST"], "2")
        for name in ("openmpi", "mpich"):
            self.assertIn("10.78.0.1:2,10.78.0.2:2", launches[name].command)
            self.assertIn(hosts.ENTER, launches[name].command)
            self.assertEqual(launches[name].environment["COLLX_BENCH_HOSTS"], "/run/netns/made-%d")
        self.assertIn("self,vader,tcp", launches["openmpi"].command)
        self.assertNotIn("MPIR_CVAR_NOLOCAL", launches["mpich"].environment)
        self.assertNotIn("limit", launches)
        self.assertIn("composite (bbr) over 2 hosts, veth", report.title(asked))
        # A host sends what the others lack, and not what each rank lacks.
        self.assertEqual(network.least_bytes(asked), 5 * (4 + 66))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip") and shutil.which("unshare"), "root, ip and unshare")
    def test_a_launcher_of_mpi_finds_hosts_with_names_and_addresses_of_their_own(self):
        script = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                  "import os, subprocess\n"
                  "from comparing import hosts, network\n"
                  "try:\n    network.enter_own_namespace(); hosts.make(2, '', network.control())\n"
                  "except network.Refused as why:\n    print('SKIPPED:', why); sys.exit()\n"
                  "for number in (1, 2):\n"
                  "    subprocess.run([hosts.ENTER, '-x', '-l', 'me', f'10.78.0.{number}', 'hostname; ip -br addr show v0; echo $$'],\n"
                  "                   env={**os.environ, **hosts.environment()}, check=True)\n")
        if subprocess.run(["unshare", "--uts", "--ipc", "--pid", "--fork", "--mount-proc", "hostname", "other"],
                          capture_output=True).returncode != 0:
            self.skipTest("no hosts with names of their own here")
        done = subprocess.run([sys.executable, "-c", script, BENCH], capture_output=True, text=True)
        if "SKIPPED:" in done.stdout:
            self.skipTest(done.stdout.strip())
        said = done.stdout.split()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([word for word in said if word.startswith("host")], ["host0", "host1"])
        self.assertIn("10.78.0.1/24", said)
        self.assertIn("10.78.0.2/24", said)
        self.assertEqual(said.count("1"), 2)  # who runs there is the first process

    def choose_without(self, privilege, allowed):
        """What choose_control("cubic") says where the system answers with the error PRIVILEGE."""
        def answer(path, mode="r", **_):
            if mode == "w":
                raise OSError(privilege, os.strerror(privilege))
            return io.StringIO(allowed if "allowed" in path else "reno bbr cubic\n")
        network.open = answer
        try:
            network.choose_control("cubic")
        except network.Refused as why:
            return str(why)
        finally:
            del network.open

    def test_a_congestion_control_that_a_namespace_may_not_choose_is_told_how_to_be_allowed(self):
        said = self.choose_without(errno.EPERM, "reno bbr\n")
        self.assertIn('sysctl -w net.ipv4.tcp_allowed_congestion_control="reno bbr cubic"', said)
        for privilege, allowed in ((errno.ENOENT, "reno bbr"), (errno.EPERM, "reno bbr cubic")):
            said = self.choose_without(privilege, allowed)
            self.assertIn("sysctl net.ipv4.tcp_available_congestion_control", said)
            self.assertNotIn("-w", said)

    def test_without_its_program_hosts_are_refused_with_advice(self):
        usual = os.environ["PATH"]
        os.environ["PATH"] = "/nowhere"
        try:
            with self.assertRaisesRegex(hosts.Refused, "ip: No such file or directory; apt-get install iproute2"):
                hosts.ip("netns", "list")
        finally:
            os.environ["PATH"] = usual

    def test_points_say_which_congestion_control(self):
        asked = request(transport="tcp", congestion="reno", bytes=[8])
        points = report.points({**times(asked), "limit": {8: [0.5]}}, asked)
        self.assertEqual({p["congestion"] for p in points}, {"reno"})
        self.assertIn("tcp (reno)", report.table(points, asked))
        self.assertIn("share of plain sockets' limit", "\n".join(summary.limit_lines(points)))
        self.assertNotEqual(groups.key(points[0]), groups.key(dict(points[0], congestion="cubic")))


if __name__ == "__main__":
    unittest.main()
