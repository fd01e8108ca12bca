# SPDX-License-Identifier: Apache-2.0
"""Where programs that talk over TCP run: in a network namespace of this process's own where one is asked for;
the congestion control in force there, and what its loopback interface has carried."""
import ctypes
import errno
import os
import socket
import subprocess

from comparing import hosts

CLONE_NEWNET = 0x40000000
DEFAULT_CONTROL = "/proc/sys/net/ipv4/tcp_congestion_control"
CONTROLS = "/proc/sys/net/ipv4/tcp_{}_congestion_control"
HEAD_BYTES = 66     # of an Ethernet frame with TCP's timestamps: what a message takes besides itself
CALLS_AT_LEAST = 5  # of each size, whatever the program (bench/perf/method.h)


Refused = hosts.Refused


def enter_own_namespace():
    """This process and all it starts see nothing but a loopback interface of their own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise Refused(f"a network namespace is refused: {os.strerror(ctypes.get_errno())}; run as root, or "
                      "without --congestion and --namespace")
    try:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        raise Refused(f"cannot set up lo in a new network namespace: {problem}; "
                      "apt-get install iproute2") from None


def choose_control(name):
    """For sockets that choose none themselves, in this namespace."""
    try:
        with open(DEFAULT_CONTROL, "w", encoding="ascii") as file:
            file.write(name)
    except OSError as problem:
        raise Refused(f"cannot choose the congestion control {name}: {problem.strerror}; "
                      f"{advice(name, problem)}") from None


def advice(name, problem):
    """A namespace of its own may choose only what the first one allows everybody."""
    allowed = listed("allowed")
    if problem.errno == errno.EPERM and name in listed("available") and name not in allowed:
        return ("a network namespace may choose only what net.ipv4.tcp_allowed_congestion_control lists; "
                f'outside, run  sysctl -w net.ipv4.tcp_allowed_congestion_control="{" ".join([*allowed, name])}"')
    return "sysctl net.ipv4.tcp_available_congestion_control lists what there is"


def listed(which):
    """Congestion controls that are "available" or "allowed", as far as this namespace is told."""
    try:
        with open(CONTROLS.format(which), encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return []


def control():
    """What a new socket is under."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as any_socket:
        name = any_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.split(b"\0", 1)[0].decode()


def prepare(asked):
    """Notes to print. Sets asked.congestion to what is in force."""
    if asked.namespace or asked.congestion or asked.veth:
        enter_own_namespace()
    if asked.congestion:
        choose_control(asked.congestion)
    asked.congestion = control()
    if asked.veth:
        count = asked.hosts if hosts.are_shared(asked) else max(asked.ranks)
        hosts.make(count, asked.shape, asked.congestion)
    return [f"congestion control of every program: {asked.congestion}"]


def carried_bytes():
    """By lo of this namespace, or between the ranks' own hosts, so far."""
    if hosts.are_made():
        return hosts.carried_bytes()
    with open("/proc/self/net/dev", encoding="ascii") as file:
        return next(int(line.split(":", 1)[1].split()[0]) for line in file if line.strip().startswith("lo:"))


def least_bytes(group):
    """What the network must carry while a program measures the group over TCP: what a host lacks, or a rank."""
    if group.hosts < 2:
        return 0
    return CALLS_AT_LEAST * sum(size * (group.hosts - 1) // group.hosts + HEAD_BYTES for size in group.bytes)
