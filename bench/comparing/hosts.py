# SPDX-License-Identifier: Apache-2.0
"""Hosts for --veth and composite: network namespaces, cabled to a bridge in this process's own. With --veth each
rank has one; of composite several share one, and those of a launcher of MPI there have a name and process numbers
of their own, too (enter_host.sh): so it takes them for hosts."""
import atexit
import os
import secrets
import subprocess

ENTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "enter_host.sh")
BRIDGE = "v0"  # named as the cables' other ends, so that launchers and ranks are told one name
_hosts = []


class Refused(Exception):
    """The system does not do what the user asks for."""


def is_networked(asked):
    """Of a request, or a group: whether TCP carries what it measures."""
    return asked.transport in ("tcp", "composite")


def are_shared(asked):
    """Whether several ranks of it lie on each host, and share memory there."""
    return asked.transport == "composite"


def ip(*words, check=True):
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True)
    except OSError as problem:
        raise Refused(f"ip: {problem.strerror}; apt-get install iproute2") from None
    if check and done.returncode != 0:
        raise Refused(f"ip {' '.join(words)}: {done.stderr.strip()}; "
                      "hosts want root and a kernel with virtual cables")


def inside(host, *command):
    done = subprocess.run(["ip", "netns", "exec", host, *command], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(f"{' '.join(command)}: {done.stderr.strip() or 'refused'} (in the namespace of a rank)")
    return done.stdout


def make(count, shape, congestion):
    """`shape`: a queueing discipline in tc's words, or none. This process must be in a namespace of its own."""
    atexit.register(remove)
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("addr", "add", "10.78.0.254/24", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")
    for number in range(count):
        host = f"collxbench{os.getpid()}-{number}"
        ip("netns", "add", host)
        _hosts.append(host)
        ip("link", "add", f"port{number}", "type", "veth", "peer", "name", "v0", "netns", host)
        ip("link", "set", f"port{number}", "master", BRIDGE, "up")
        ip("-n", host, "addr", "add", f"10.78.0.{number + 1}/24", "dev", "v0")
        ip("-n", host, "link", "set", "v0", "up")
        ip("-n", host, "link", "set", "lo", "up")
        inside(host, "sh", "-c", f"echo {congestion} >/proc/sys/net/ipv4/tcp_congestion_control")
        if shape:
            inside(host, "tc", "qdisc", "add", "dev", "v0", "root", *shape.split())


def remove():
    while _hosts:
        ip("netns", "del", _hosts.pop(), check=False)


def are_made():
    return bool(_hosts)


def environment(ranks_per_host=1):
    """For programs that fork their ranks (bench/perf/own_host.hpp). A job between hosts needs a secret."""
    if not _hosts:
        return {}
    name = _hosts[0].rsplit("-", 1)[0]
    return {"COLLX_BENCH_HOSTS": f"/run/netns/{name}-%d", "COLLX_BENCH_ADDRESSES": "10.78.0.%d",
            "COLLX_BENCH_RANKS_PER_HOST": str(ranks_per_host), "COLLX_SECRET": secrets.token_hex(32)}


def listed(ranks_per_host):
    """As launchers of MPI want them."""
    return ",".join(f"10.78.0.{number + 1}:{ranks_per_host}" for number in range(len(_hosts)))


def wrapper(variable):
    """In front of a rank that a launcher starts, which says in `variable` which rank it is."""
    name = _hosts[0].rsplit("-", 1)[0]
    return ["sh", "-c", f'exec ip netns exec {name}-"${variable}" "$@"', "rank"]


def carried_bytes():
    """By the bridge's ports, so far: what the ranks have sent."""
    with open("/proc/self/net/dev", encoding="ascii") as file:
        return sum(int(line.split(":", 1)[1].split()[0]) for line in file if line.strip().startswith("port"))
