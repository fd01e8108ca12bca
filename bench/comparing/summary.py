# SPDX-License-Identifier: Apache-2.0
"""What a table of many points comes to: geometric means, the worst points, the share of the limit."""
import math

from comparing import doubts
from comparing.doubts import best_peer
from comparing.groups import STATES
from comparing.report import columns, human_bytes, human_us

NOISE = 1.05               # a point slower than this is called slower
LIMIT_FROM_BYTES = 8 << 20  # below, a call is waiting and not memory; plain sockets wait as well


def compared(points):
    """What is mixed is not."""
    return [point for point in points if point["ratio"] and not point.get("mixed")]


def times_faster(points):
    """The geometric mean of how many times faster collx is than the best peer; None without any."""
    ratios = [point["ratio"] for point in compared(points)]
    return math.exp(-math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None


def worst(points, count):
    return sorted(compared(points), key=lambda point: -point["ratio"])[:count]


def slower(points):
    return [point for point in compared(points) if point["ratio"] > NOISE]


def described(point):
    size = "" if point["collective"] == "barrier" else f" {human_bytes(point['bytes'])}"
    kind = "" if point["collective"] == "barrier" else f", {point['memory']}, {point['buffers']}"
    return f"{point['collective']}{size}, {point['ranks']} ranks{kind}"


def fold(value):
    return "-" if value is None else f"{value:.2f}x"


def means_table(points):
    """Per number of ranks and memory, then of everything."""
    kinds = sorted({(p["ranks"], p["memory"]) for p in compared(points)})
    states = [s for s in STATES if any(p["buffers"] == s for p in points)]
    heads = ["ranks", "memory", "x faster"] + (states if len(states) > 1 else [])
    heads += ["points", "slower", "worst"]
    rows = []
    for ranks, memory in kinds + [(None, None)]:
        of = [p for p in compared(points) if ranks is None or (p["ranks"], p["memory"]) == (ranks, memory)]
        row = [str(ranks or "all"), memory or "all", fold(times_faster(of))]
        if len(states) > 1:
            row += [fold(times_faster([p for p in of if p["buffers"] == state])) for state in states]
        rows.append(row + [str(len(of)), str(len(slower(of))), f"{max(p['ratio'] for p in of):.2f}"])
    return columns(heads, rows)


def worst_lines(points, count):
    return [f"  {p['ratio']:.2f}  {described(p)}: {human_us(p['collx_us'])} us, "
            f"{best_peer(p)} {human_us(p['peers_us'][best_peer(p)])} us" for p in worst(points, count)]


def share(point):
    """Of the limit: 1 is as fast as the memory, or as plain sockets."""
    return point["limit_us"] / point["collx_us"]


def limited(points):
    """Those in which the limit says something."""
    return [p for p in points if p["limit_us"] and p["collx_us"] and not p.get("mixed")
            and (p["transport"] == "tcp" or p["bytes"] >= LIMIT_FROM_BYTES)]


def is_beaten(point):
    """A share that is printed as more than 100 %: the limit is missed, and not surpassed."""
    return round(100 * share(point)) > 100


def cell(point):
    return "beaten" if is_beaten(point) else f"{100 * share(point):.0f} %"


def beaten_lines(shown):
    beaten = [f"{described(p)} ({100 * share(p):.0f} %)" for p in shown if is_beaten(p)]
    return ["limit beaten: it is no bound here:", *(f"  {each}" for each in beaten)] if beaten else []


def limit_lines(points):
    shown = limited(points)
    if not shown:
        return []
    groups = list(dict.fromkeys((p["collective"], p["ranks"], p["memory"], p["buffers"]) for p in shown))
    sizes = sorted({p["bytes"] for p in shown})
    rows = []
    for group in groups:
        at = {p["bytes"]: p for p in shown
              if (p["collective"], p["ranks"], p["memory"], p["buffers"]) == group}
        cells = [cell(at[size]) if size in at else "-" for size in sizes]
        rows.append([group[0], str(group[1]), group[2], group[3], *cells])
    heads = ["collective", "ranks", "memory", "buffers"] + [human_bytes(size) for size in sizes]
    whose = "plain sockets'" if shown[0]["transport"] == "tcp" else "the memory's"
    return ["", f"share of {whose} limit reached:", *columns(heads, rows), *beaten_lines(shown)]


def text(points, worst_count):
    found = []
    if compared(points):
        peers = sorted({peer for point in points for peer in point["peers_us"]})
        found += [f"times faster than the best of {', '.join(peers)} (geometric means; slower: by more than "
                  f"{100 * (NOISE - 1):.0f} %; worst: collx over the best peer)", *means_table(points)]
        found += ["", "worst points (collx over the best peer):", *worst_lines(points, worst_count)]
    against = doubts.lines(points)
    found += limit_lines(points) + (["", *against] if against else [])
    return "\n".join(found).strip()
