# SPDX-License-Identifier: Apache-2.0
"""What is started for one group: each program's command line, and each launcher's flags."""
import os
import signal
import sys
from dataclasses import dataclass, field

from comparing import builds, hosts

# What a peer cannot do. Gloo: its only reduce_scatter is of an older interface and overwrites its input.
LACKS = {"gloo": lambda group: group.collective == "reduce_scatter"
         or (group.collective == "all_to_all" and group.place == "in_place")}

# What holds a peer to TCP on lo. MPICH (4.0, over UCX) told only not to use shared memory itself would leave
# that to UCX.
OPENMPI_TCP = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include"]
MPICH_TCP = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}
# Between hosts; inside one, what each has for that.
OPENMPI_HOSTS = ["--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include"]
MPICH_HOSTS = {"UCX_TLS": "tcp,self,posix,cma"}
RANK_VARIABLES = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}
# Round robin: a peer may have a second thread on the same core, without which it never connects (UCX).
# A rank that spins at its launcher's own real-time priority would keep the launcher, and whoever ends
# programs that hang, off its core for ever.
RANK_PRIORITY, LAUNCHER_PRIORITY = 5, 10
SOCKETS_KNOW = ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast"]


@dataclass
class Launch:
    name: str       # as in the table: "collx private", "openmpi", "limit"
    peer: str       # "" for collx and the limit
    memory: str     # "" for others than collx
    command: list
    json_path: str  # where it writes its points; "" for lines on stdout
    environment: dict = field(default_factory=dict)


class Refused(Exception):
    """The system does not allow what the user asks for."""


def end_in_order():
    """Told to end, this program first ends what it has started and set up. Started by nohup it goes on."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) != signal.SIG_IGN:
            signal.signal(ending, lambda *_: sys.exit(143))


def rise_above_ranks():
    """This process and the launchers that it starts, before ranks with real-time priority run."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(LAUNCHER_PRIORITY))
    except PermissionError:
        raise Refused("--real-time is refused; run it as root, or without") from None


def ranks_own_priority(group):
    """What a program is started with. More ranks than cores need the usual scheduler."""
    if not group.real_time:
        return []
    return ["chrt", "--rr", str(RANK_PRIORITY)] if fits(group) else ["chrt", "--other", "0"]


def launches(built, group):
    found = [collx_launch(built, memory, group) for memory in group.memory]
    found += [peer_launch(built.peers[peer], peer, group) for peer in group.peers]
    if built.limit and has_limit(group):
        found.append(plain_launch("limit", "", built.limit, group))
    return found


def has_limit(group):
    """Of fresh inputs none is known: a line that was just written must go from one processor's cache to another's,
    which neither the streams, each in a memory of its own, nor the sockets show."""
    if group.state == "fresh":
        return False
    return group.collective in SOCKETS_KNOW if group.transport == "tcp" else group.collective != "barrier"


def can(peer, group):
    return not (peer in LACKS and LACKS[peer](group))


def processors():
    return len(os.sched_getaffinity(0))


def fits(group):
    return group.ranks <= processors()


def cores(folder="/sys/devices/system/cpu"):
    """How many cores this process's CPUs are on: half as many, where each core runs two threads."""
    return len({siblings(cpu, folder) for cpu in os.sched_getaffinity(0)})


def siblings(cpu, folder):
    try:
        with open(os.path.join(folder, f"cpu{cpu}", "topology", "thread_siblings_list"), encoding="ascii") as file:
            return file.read()
    except OSError:
        return f"alone {cpu}"


def bound_to(group):
    """As collx's ranks are (bench/perf/pin.hpp): one per core while there are enough, then one per CPU."""
    return "core" if group.ranks <= cores() else "hwthread"


def sizes(group):
    return ",".join(map(str, group.bytes))


def collx_launch(built, memory, group):
    json_path = os.path.join(built.folder, f"collx_{memory}.json")
    command = [*ranks_own_priority(group), built.collx, group.collective,
               "--ranks", str(group.ranks), "--transport", group.transport, "--memory",
               memory, "--algorithm", group.algorithm, "--places", group.place,
               "--state", group.state, "--json", json_path]
    if hosts.are_shared(group):
        command += ["--pin", "off"]  # as the others are there
    if group.collective != "barrier":
        command += ["--bytes", sizes(group)]
    return Launch(f"collx {memory}", "", memory, command, json_path, hosts.environment(ranks_per_host(group)))


def ranks_per_host(group):
    return group.ranks // group.hosts


def shared_arguments(group):
    """The flags that mpi_perf, gloo_perf, memory_limit and socket_limit have in common."""
    in_place = "1" if group.place == "in_place" else "0"
    state = {"rotating": [], "hot": ["--pool", "0"], "fresh": ["--fresh", "1"]}[group.state]
    return [group.collective, "--bytes", sizes(group), "--in-place", in_place, *state]


def plain_launch(name, peer, program, group):
    command = [*ranks_own_priority(group), program, *shared_arguments(group), "--ranks", str(group.ranks)]
    return Launch(name, peer, "", command, "", hosts.environment(ranks_per_host(group)))


def peer_launch(program, peer, group):
    if peer == "gloo":
        return plain_launch(peer, peer, program, group)
    launcher = [builds.first_found(builds.LAUNCHERS[peer])]
    placed = openmpi_flags(group) if peer == "openmpi" else mpich_flags(group)
    own_host = hosts.wrapper(RANK_VARIABLES[peer]) if hosts.are_made() and not hosts.are_shared(group) else []
    command = launcher + placed + ["-n", str(group.ranks), *own_host, *ranks_own_priority(group), program,
                                   *shared_arguments(group)]
    environment = mpich_environment(group) if peer == "mpich" else openmpi_environment(group)
    return Launch(peer, peer, "", command, "", environment)


def openmpi_flags(group):
    flags = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    flags += openmpi_tcp() if group.transport == "tcp" else openmpi_hosts(group) if hosts.are_shared(group) else []
    if fits(group) and hosts.are_shared(group):
        return flags + ["--bind-to", "none"]  # each host's daemon would begin with the same cores
    if fits(group):
        share = ["--use-hwthread-cpus"] if bound_to(group) == "hwthread" else []
        # Told only where to bind, Open MPI places more than two ranks on the machine's sockets in turn.
        return flags + share + ["--map-by", bound_to(group), "--bind-to", bound_to(group)]
    return flags + ["--bind-to", "none", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]


def interface():
    return hosts.BRIDGE if hosts.are_made() else "lo"


def openmpi_tcp():
    # Ranks on hosts of their own reach mpirun by the bridge, too.
    to_launcher = ["--mca", "oob_tcp_if_include", interface()] if hosts.are_made() else []
    return [*OPENMPI_TCP, interface(), *to_launcher]


def openmpi_hosts(group):
    return ["--host", hosts.listed(ranks_per_host(group)), "--mca", "plm_rsh_agent", hosts.ENTER,
            *OPENMPI_HOSTS, interface(), "--mca", "oob_tcp_if_include", interface()]


def openmpi_environment(group):
    if hosts.are_shared(group):
        return hosts.environment()
    if not hosts.are_made():
        return {}
    return {"PMIX_MCA_ptl_base_remote_connections": "1", "PMIX_MCA_ptl_tcp_remote_connections": "1",
            "PMIX_MCA_ptl_base_if_include": interface()}


def mpich_flags(group):
    placed = ["-bind-to", bound_to(group)] if fits(group) and not hosts.are_shared(group) else []
    if hosts.are_shared(group):
        placed += ["-launcher", "ssh", "-launcher-exec", hosts.ENTER, "-iface", interface(),
                   "-hosts", hosts.listed(ranks_per_host(group))]
    return placed


def mpich_environment(group):
    polls = {} if fits(group) else {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
    over_tcp = {**MPICH_TCP, "UCX_NET_DEVICES": interface()} if group.transport == "tcp" else {}
    on_hosts = {**MPICH_HOSTS, "UCX_NET_DEVICES": interface(), **hosts.environment()} if hosts.are_shared(group) else {}
    return {**polls, **over_tcp, **on_hosts}
