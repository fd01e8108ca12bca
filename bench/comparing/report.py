# SPDX-License-Identifier: Apache-2.0
"""From medians per round to points, a table and JSON."""
import json
import os
from statistics import median


class Unwritable(Exception):
    """A path given by the user cannot be written."""


def require_writable(path):
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise Unwritable(f"cannot write {path}: give a file in a folder that exists and is yours")


def points(times, asked):
    """One per size and kind of memory. ratio: collx over the best peer, below 1 collx is faster."""
    found = []
    for size in asked.bytes:
        peers = {peer: round(median(times[peer][size]), 4) for peer in asked.peers}
        for memory in asked.memory or [None]:
            samples = times[f"collx {memory}"][size] if memory else []
            collx_us = round(median(samples), 4) if samples else None
            ratio = round(collx_us / min(peers.values()), 4) if samples and peers else None
            found.append({
                "collective": asked.collective, "bytes": size, "ranks": asked.ranks, "memory": memory,
                "transport": asked.transport, "collx_us": collx_us, "peers_us": peers, "ratio": ratio,
                "algorithm": asked.algorithm, "place": asked.place, "state": asked.state,
                "rounds": asked.rounds, "collx_range_us": extremes(samples),
                "peers_range_us": {peer: extremes(times[peer][size]) for peer in asked.peers}})
    return found


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
    heads = ["size"] + [f"collx {m}" for m in memories] + list(asked.peers)
    heads += [f"ratio {m}" for m in memories] if asked.peers else []
    rows = []
    for size in asked.bytes:
        at = {point["memory"]: point for point in found if point["bytes"] == size}
        any_point = next(iter(at.values()))
        row = [human_bytes(size)] + [human_us(at[m]["collx_us"]) for m in memories]
        row += [human_us(any_point["peers_us"][p]) for p in asked.peers]
        row += [f"{at[m]['ratio']:.3f}" for m in memories] if asked.peers else []
        rows.append(row)
    widths = [max(len(row[i]) for row in [heads] + rows) for i in range(len(heads))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in [heads] + rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    rounds = f"medians of {asked.rounds} rounds" if asked.rounds > 1 else "one round"
    head = [f"{title(asked)}, {asked.state} buffers: microseconds per call, {rounds}", ""]
    explained = ["", "ratio: collx over the better peer; below 1 collx is faster"]
    return "\n".join(head + lines + (explained if asked.peers and memories else []))


def title(asked):
    not_sums = {"barrier": [], "all_gather": ["float"], "broadcast": ["float"]}
    moved = not_sums.get(asked.collective, ["float sum"])
    return ", ".join([asked.collective, f"{asked.ranks} ranks", *moved, asked.transport,
                      asked.place.replace("_", " ")])


def write_json(found, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(point) for point in found) + "\n]\n")
