# SPDX-License-Identifier: Apache-2.0
"""From what is asked to groups: one collective on one number of ranks with one state of its buffers.

A group is measured in rounds of its own, so that everything that is compared was measured in the same
minute, and is written as soon as it is finished, so that a long table can be continued.
"""
from types import SimpleNamespace

from comparing import hosts, programs

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce", "barrier"]
OVER_TCP = ["all_reduce", "all_to_all", "broadcast"]  # unless others are asked for
STATES = ["rotating", "hot", "fresh"]
ALL_STATES = ["rotating", "hot"]
ALL_RANKS = [2, 4, 8]


def groups(asked, peers):
    """`peers`: those that are installed."""
    return [group(asked, peers, collective, ranks, state)
            for ranks in asked.ranks for collective in asked.collectives
            for state in (asked.states if collective != "barrier" else asked.states[:1])]


def group(asked, peers, collective, ranks, state):
    found = SimpleNamespace(collective=collective, ranks=ranks, state=state, bytes=asked.bytes,
                            memory=asked.memory, transport=asked.transport, algorithm=asked.algorithm,
                            place=asked.place, rounds=asked.rounds, congestion=asked.congestion,
                            network=asked.network, real_time=asked.real_time,
                            hosts=asked.hosts if hosts.are_shared(asked) else ranks)
    if collective == "broadcast":
        found.place = "in_place"  # MPI knows no other
    if collective == "barrier":
        found.bytes, found.memory = [0], asked.memory[:1]
    found.peers = [peer for peer in peers if programs.can(peer, found)]
    found.absent = [peer for peer in asked.peers if peer not in peers and programs.can(peer, found)]
    return found


def label(group):
    if group.collective == "barrier":
        return f"barrier, {group.ranks} ranks"
    return f"{group.collective}, {group.ranks} ranks, {group.state}"


def key(point):
    names = ("collective", "ranks", "transport", "algorithm", "place", "buffers", "congestion", "network")
    return (*(point.get(name) for name in names), point.get("real_time", False))


def key_of(group):
    return (group.collective, group.ranks, group.transport, group.algorithm, group.place, group.state,
            group.congestion, group.network, group.real_time)


def is_covered(group, points):
    """Whether earlier points answer the whole group; what is mixed is no answer."""
    there = {(p["bytes"], p["memory"]) for p in points
             if key(p) == key_of(group) and set(group.peers) <= set(p["peers_us"]) and not p.get("mixed")}
    return all((size, memory) in there for size in group.bytes for memory in group.memory or [None])


def without(points, group):
    """The earlier points that the group does not measure anew."""
    return [p for p in points if key(p) != key_of(group) or p["bytes"] not in group.bytes
            or p["memory"] not in (group.memory or [None])]


def narrowed(points, named):
    """Those that have, of each name, one of the values given for it; where none are given, any will do."""
    return [p for p in points if all(p[name] in values for name, values in named.items() if values)]
