# SPDX-License-Identifier: Apache-2.0
"""Two hosts, which are network namespaces, joined by several cables of a speed each, as by several routers of a
network: an address of each host is reached over all of them, and the kernel chooses a cable for each connection by
its addresses and ports (as switches do; ECMP)."""
import atexit
import os
import secrets

from comparing.hosts import inside, ip

ADDRESS = "10.90.0.{}"
CABLES = "c"  # c0, c1 ...
BURST_BYTES, QUEUE_MS = 512 << 10, 20
_made = []


def make(speeds_mbit, congestion):
    """A cable for each speed. Names of both hosts."""
    atexit.register(remove)
    names = [f"collxpaths{os.getpid()}-{side}" for side in range(2)]
    for name in names:
        ip("netns", "add", name)
        _made.append(name)
        ip("-n", name, "link", "set", "lo", "up")
        for file, value in (("tcp_congestion_control", congestion), ("fib_multipath_hash_policy", "1")):
            inside(name, "sh", "-c", f"echo {value} >/proc/sys/net/ipv4/{file}")
    for cable, mbit in enumerate(speeds_mbit):
        lay(names, cable, mbit)
    for side, name in enumerate(names):
        own, other = ADDRESS.format(side + 1), ADDRESS.format(2 - side)
        ip("-n", name, "addr", "add", f"{own}/32", "dev", "lo")
        hops = [["nexthop", "via", f"10.91.{cable}.{2 - side}", "dev", f"{CABLES}{cable}"]
                for cable in range(len(speeds_mbit))]
        ip("-n", name, "route", "add", f"{other}/32", "src", own, *sum(hops, []))
    return names


def lay(names, cable, mbit):
    ends = f"{CABLES}{cable}"
    ip("-n", names[0], "link", "add", ends, "type", "veth", "peer", "name", ends, "netns", names[1])
    for side, name in enumerate(names):
        ip("-n", name, "addr", "add", f"10.91.{cable}.{side + 1}/24", "dev", ends)
        ip("-n", name, "link", "set", ends, "up")
        inside(name, "tc", "qdisc", "add", "dev", ends, "root", "tbf", "rate", f"{mbit}mbit", "burst",
               str(BURST_BYTES), "latency", f"{QUEUE_MS}ms")


def remove():
    while _made:
        ip("netns", "del", _made.pop(), check=False)


def environment(flows):
    """For collx_perf (bench/perf/own_host.hpp)."""
    name = _made[0].rsplit("-", 1)[0]
    return {"COLLX_BENCH_HOSTS": f"/run/netns/{name}-%d", "COLLX_BENCH_ADDRESSES": ADDRESS.format("%d"),
            "COLLX_BENCH_RANKS_PER_HOST": "1", "COLLX_SECRET": secrets.token_hex(32), "COLLX_TCP_FLOWS": str(flows)}


def sent_bytes(name, cables):
    """By each cable's end on one host, so far."""
    counts = inside(name, "cat", "/proc/net/dev").splitlines()
    by_name = {line.split(":")[0].strip(): int(line.split(":")[1].split()[8]) for line in counts if ":" in line}
    return [by_name[f"{CABLES}{cable}"] for cable in range(cables)]
