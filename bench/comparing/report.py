# SPDX-License-Identifier: Apache-2.0
"""From medians per round to points, a table per group, and JSON."""
import json
import os
from statistics import median

from comparing import hosts


class Unwritable(Exception):
    """A path given by the user cannot be written."""


class Unreadable(Exception):
    """A file given by the user does not hold points."""


def require_writable(path):
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        raise Unwritable(f"cannot write {path}: it is a folder; give a file in it")
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise Unwritable(f"cannot write {path}: give a file in a folder that exists and is yours")
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise Unwritable(f"cannot write {path}: the file may not be written to; give another")


def points(times, asked, is_mixed=False):
    """One per size and kind of memory. ratio: collx over the best peer, below 1 collx is faster."""
    found = []
    for size in asked.bytes:
        peers = {peer: rounded(times[peer][size]) for peer in asked.peers if times.get(peer, {}).get(size)}
        lacks = [peer for peer in asked.peers + asked.absent if peer not in peers]
        limit_us = rounded(times["limit"][size]) if times.get("limit", {}).get(size) else None
        for memory in asked.memory or [None]:
            samples = times[f"collx {memory}"][size] if memory else []
            collx_us = rounded(samples) if samples else None
            ratio = round(collx_us / min(peers.values()), 4) if samples and peers else None
            found.append({
                "collective": asked.collective, "bytes": size, "ranks": asked.ranks, "memory": memory,
                "transport": asked.transport, "collx_us": collx_us, "peers_us": peers, "ratio": ratio,
                "buffers": asked.state, "limit_us": limit_us,
                "algorithm": asked.algorithm, "place": asked.place,
                "rounds": rounds_kept(times, asked, size), "collx_range_us": extremes(samples),
                "peers_range_us": {peer: extremes(times[peer][size]) for peer in peers},
                **({"lacks": lacks} if lacks else {}), **({"mixed": True} if is_mixed else {}),
                **({"congestion": asked.congestion} if hosts.is_networked(asked) else {}),
                **({"network": asked.network} if asked.network else {}),
                **({"real_time": True} if asked.real_time else {})})
    return found


def rounds_kept(times, asked, size):
    """On how many rounds each of the figures rests, at least: those measured far apart may have been left out."""
    return min((len(sizes[size]) for sizes in times.values() if sizes.get(size)), default=asked.rounds)


def rounded(samples):
    return round(median(samples), 4)


def extremes(samples):
    return [min(samples), max(samples)] if samples else None


def human_bytes(count):
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift and count % (1 << shift) == 0:
            return f"{count >> shift} {unit}"
    return f"{count} B"


def human_us(us):
    if us is None:
        return "-"
    return f"{us:.3f}" if us < 10 else f"{us:.2f}" if us < 100 else f"{us:.1f}" if us < 10000 else f"{us:.0f}"


def table(found, asked):
    memories = asked.memory
    peers = [peer for peer in asked.peers if any(peer in point["peers_us"] for point in found)]
    limited = any(point["limit_us"] for point in found)
    heads = ["size"] + [f"collx {m}" for m in memories] + peers + (["limit"] if limited else [])
    heads += [f"ratio {m}" for m in memories] if peers else []
    rows = []
    for size in asked.bytes:
        at = {point["memory"]: point for point in found if point["bytes"] == size}
        any_point = next(iter(at.values()))
        row = [human_bytes(size)] + [human_us(at[m]["collx_us"]) for m in memories]
        row += [human_us(any_point["peers_us"].get(p)) for p in peers]
        row += [human_us(any_point["limit_us"])] if limited else []
        row += [ratio(at[m]) for m in memories] if peers else []
        rows.append(row)
    kept = sorted({point["rounds"] for point in found})
    most = max(kept)
    rounds = f"medians of {f'{kept[0]} to ' if kept[0] < most else ''}{most} rounds" if most > 1 else "one round"
    head = [f"{title(asked)}, {asked.state} buffers: microseconds per call, {rounds}", ""]
    explained = ["", "ratio: collx over the best peer; below 1 collx is faster"] if peers and memories else []
    if any(point.get("mixed") for point in found):
        explained.append("mixed: programs met processors at different distances, and nothing can be compared")
    if asked.state == "fresh":
        explained.append("fresh: inputs are written before each call; what writing alone takes is taken off")
    if limited:
        explained.append("limit: the bytes the collective must send, over plain sockets"
                         if asked.transport == "tcp" else
                         "limit: the least memory the collective must move, streamed by as many processes")
    return "\n".join(head + columns(heads, rows) + explained)


def ratio(point):
    if point.get("mixed"):
        return "mixed"
    return f"{point['ratio']:.3f}" if point["ratio"] else "-"


def columns(heads, rows):
    """Lines of a table, right-aligned."""
    widths = [max(len(row[i]) for row in [heads] + rows) for i in range(len(heads))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in [heads] + rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines


def title(asked):
    not_sums = {"barrier": [], "all_gather": ["float"], "all_to_all": ["float"], "broadcast": ["float"]}
    moved = not_sums.get(asked.collective, ["float sum"])
    over = asked.transport + (f" ({asked.congestion})" if hosts.is_networked(asked) else "")
    if asked.network:
        over += f" over {asked.network}"
    return ", ".join([asked.collective, f"{asked.ranks} ranks", *moved, over,
                      asked.place.replace("_", " ")])


# What every point has said since there are files of them.
NAMES = {"collective", "bytes", "ranks", "memory", "transport", "collx_us", "peers_us", "ratio", "buffers", "limit_us"}


def read_json(path):
    """The points of an earlier run."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError) as problem:
        raise Unreadable(f"cannot read the points in {path}: {problem}") from None
    if not isinstance(found, list) or not all(isinstance(point, dict) and NAMES <= point.keys() for point in found):
        raise Unreadable(f"{path} holds something else than points of bench/compare: an array, each with "
                         f"{', '.join(sorted(NAMES))}")
    return found


def write_json(found, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(point) for point in found) + "\n]\n")
