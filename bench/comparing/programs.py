# SPDX-License-Identifier: Apache-2.0
"""What is started for one group: each program's command line, and each launcher's flags."""
import os
from dataclasses import dataclass, field

from comparing import builds

# What a peer cannot do. Gloo: its only reduce_scatter is of an older interface and overwrites its input.
LACKS = {"gloo": lambda group: group.collective == "reduce_scatter"
         or (group.collective == "all_to_all" and group.place == "in_place")}


@dataclass
class Launch:
    name: str       # as in the table: "collx private", "openmpi", "limit"
    peer: str       # "" for collx and the limit
    memory: str     # "" for others than collx
    command: list
    json_path: str  # where it writes its points; "" for lines on stdout
    environment: dict = field(default_factory=dict)


def launches(built, group):
    found = [collx_launch(built, memory, group) for memory in group.memory]
    found += [peer_launch(built.peers[peer], peer, group) for peer in group.peers]
    if built.limit and group.collective != "barrier":
        found.append(plain_launch("limit", "", built.limit, group))
    return found


def can(peer, group):
    return not (peer in LACKS and LACKS[peer](group))


def fits(group):
    return group.ranks <= len(os.sched_getaffinity(0))


def sizes(group):
    return ",".join(map(str, group.bytes))


def collx_launch(built, memory, group):
    json_path = os.path.join(built.folder, f"collx_{memory}.json")
    command = [built.collx, group.collective, "--ranks", str(group.ranks), "--transport", group.transport,
               "--memory", memory, "--algorithm", group.algorithm, "--places", group.place,
               "--state", group.state, "--json", json_path]
    if group.collective != "barrier":
        command += ["--bytes", sizes(group)]
    return Launch(f"collx {memory}", "", memory, command, json_path)


def shared_arguments(group):
    """The flags that mpi_perf, gloo_perf and memory_limit have in common."""
    in_place = "1" if group.place == "in_place" else "0"
    pool = ["--pool", "0"] if group.state == "hot" else []
    return [group.collective, "--bytes", sizes(group), "--in-place", in_place, *pool]


def plain_launch(name, peer, program, group):
    return Launch(name, peer, "", [program, *shared_arguments(group), "--ranks", str(group.ranks)], "")


def peer_launch(program, peer, group):
    if peer == "gloo":
        return plain_launch(peer, peer, program, group)
    launcher = [builds.first_found(builds.LAUNCHERS[peer])]
    placed = openmpi_flags(group) if peer == "openmpi" else mpich_flags(group)
    command = launcher + placed + ["-n", str(group.ranks), program, *shared_arguments(group)]
    polls = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"} if peer == "mpich" and not fits(group) else {}
    return Launch(peer, peer, "", command, "", polls)


def openmpi_flags(group):
    flags = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    if fits(group):
        return flags + ["--bind-to", "core"]
    return flags + ["--bind-to", "none", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]


def mpich_flags(group):
    return ["-bind-to", "core"] if fits(group) else []
