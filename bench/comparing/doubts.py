# SPDX-License-Identifier: Apache-2.0
"""What a summary must say against its own figures: who is missing, what rests on little, what is no comparison."""
from collections import Counter
from types import SimpleNamespace

from comparing import origin, programs

SCATTER = 1.5  # of one program's rounds, largest over least; above, they are hardly of one machine


def best_peer(point):
    return min(point["peers_us"], key=point["peers_us"].get)


def lines(points):
    """Of points of collx; empty where there is nothing to say."""
    of_collx = [point for point in points if point["collx_us"]]
    told = [each(of_collx) for each in (mixed, lacking, few_rounds, scattered, origin.line)]
    return [line for line in told if line]


def mixed(points):
    count = sum(1 for point in points if point.get("mixed"))
    return count and (f"mixed, and in no mean: {count} of {len(points)} points, whose programs met processors "
                      "at different distances")


def lacking(points):
    """Of each peer that has a figure anywhere, or was asked for."""
    named = {peer for point in points for peer in [*point["peers_us"], *point.get("lacks", [])]}
    told = []
    for peer in sorted(named):
        without = [point for point in points if peer not in point["peers_us"]]
        cannot = sum(1 for point in without if not programs.can(peer, SimpleNamespace(**point)))
        failed = len(without) - cannot
        if failed:
            told.append(f"{peer} {failed} (failed, or not installed)")
        if cannot:
            told.append(f"{peer} {cannot} (has no such collective)")
    return told and f"points without a peer, of {len(points)}: {'; '.join(told)}"


def few_rounds(points):
    """Rounds measured elsewhere are left out."""
    counts = Counter(point["rounds"] for point in points)
    fewer = [f"{counts[rounds]} on {rounds}" for rounds in sorted(counts)[:-1]]
    return fewer and f"points that rest on fewer rounds than the others' {max(counts)}: {', '.join(fewer)}"


def scattered(points):
    """Whether the figures that a ratio is made of come from rounds that agree."""
    count = 0
    for point in (point for point in points if point["ratio"]):
        ranges = [point.get("collx_range_us"), point.get("peers_range_us", {}).get(best_peer(point))]
        count += any(each and each[1] > SCATTER * each[0] for each in ranges)
    return count and ("points in which the rounds of collx, or of the best peer, differ by more than "
                      f"{SCATTER} times: {count} of {len(points)}")
