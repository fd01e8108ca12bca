# SPDX-License-Identifier: Apache-2.0
"""Draws the whole table as SVG: how many times faster than the best peer, a small panel per collective and
number of ranks, all on the same scale."""
import math

from comparing.groups import COLLECTIVES, STATES
from comparing.plot import COLOURS, FAINT, GRID, INK, Axis, curve, text
from comparing.report import human_bytes
from comparing.summary import compared, fold, times_faster

WIDTH, LEFT, RIGHT_MARGIN = 1080, 96, 16
TOP, ROW_HEIGHT, ROW_GAP, GAP, FOOT = 104, 150, 26, 14, 58
BARRIER_WIDTH = 46
MOST = 32  # times; what lies above is drawn there
LEAST = 0.25


def write(points, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(draw(points))


def draw(points):
    shown = compared(points)
    ranks = sorted({p["ranks"] for p in shown})
    names = [name for name in COLLECTIVES if any(p["collective"] == name for p in shown)]
    height = TOP + max(1, len(ranks)) * (ROW_HEIGHT + ROW_GAP) + FOOT - ROW_GAP
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
             f'height="{height}" font-family="Helvetica, Arial, sans-serif">',
             f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
             text(LEFT, 30, heading(shown), 17, weight="bold"), *legend(shown)]
    for row, count in enumerate(ranks):
        of = [p for p in shown if p["ranks"] == count]
        top = TOP + row * (ROW_HEIGHT + ROW_GAP)
        parts += row_label(of, count, top)
        for name, (left, right) in columns(names).items():
            edges = left, right, top
            parts += panel([p for p in of if p["collective"] == name], name, edges, shown)
            if row == 0:
                parts.append(text((left + right) / 2, top - 10, name.replace("_", " "), 13, INK, "middle"))
            if row == len(ranks) - 1 and name != "barrier":
                parts += size_ticks(all_sizes(shown), size_axis(shown, name, left, right), top + ROW_HEIGHT)
    parts.append(text((LEFT + WIDTH) / 2, height - 12, "bytes of the vector", 12, FAINT, "middle"))
    return "\n".join(parts + ["</svg>"]) + "\n"


def heading(shown):
    peers = sorted({peer for p in shown for peer in p["peers_us"]})
    words = {"openmpi": "Open MPI", "mpich": "MPICH", "gloo": "Gloo"}
    best_of = ", ".join(words[peer] for peer in words if peer in peers)
    return f"times faster than the best of {best_of or 'no peer'}"


def memories(points):
    return [m for m in ("private", "symmetric") if any(p["memory"] == m for p in points)]


def states(points):
    return [s for s in STATES if any(p["buffers"] == s for p in points)]


def legend(shown):
    parts, x = [], LEFT
    for memory in memories(shown):
        for state in states(shown):
            parts += line([(x, 56), (x + 26, 56)], memory, state)
            label = f"{memory} memory, {state}" if len(states(shown)) > 1 else f"{memory} memory"
            parts.append(text(x + 33, 60, label, 13))
            x += 56 + 6.6 * len(label)
    return parts


def line(pixels, memory, state):
    drawn = curve(pixels, f"collx {memory}")
    thin = {"hot": 'stroke-width="1.2" opacity="0.75"', "fresh": 'stroke-width="1.2" stroke-dasharray="4 3"'}
    return [drawn if state == "rotating" else drawn.replace('stroke-width="2.2"', thin[state])]


def columns(names):
    """name -> (left, right); a barrier has no sizes and needs less room."""
    wide = [name for name in names if name != "barrier"]
    room = WIDTH - LEFT - RIGHT_MARGIN - GAP * (len(names) - 1)
    if "barrier" in names:
        room -= BARRIER_WIDTH
    width = room / max(1, len(wide))
    found, x = {}, LEFT
    for name in names:
        right = x + (BARRIER_WIDTH if name == "barrier" else width)
        found[name] = (x, right)
        x = right + GAP
    return found


def row_label(points, count, top):
    parts = [text(LEFT - 84, top + 16, f"{count} ranks", 13, INK, weight="bold")]
    for place, memory in enumerate(memories(points)):
        mean = times_faster([p for p in points if p["memory"] == memory and p["collective"] != "barrier"])
        parts.append(text(LEFT - 84, top + 38 + 18 * place, fold(mean), 13, COLOURS[f"collx {memory}"]))
    return parts


def all_sizes(shown):
    return sorted({p["bytes"] for p in shown if p["collective"] != "barrier"}) or [0]


def size_axis(shown, name, left, right):
    return Axis(all_sizes(shown) if name != "barrier" else [1], left + 8, right - 8, 2)


def panel(points, name, edges, shown):
    left, right, top = edges
    y = Axis([LEAST, MOST], top + ROW_HEIGHT, top, 2)
    parts = [f'<rect x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="{ROW_HEIGHT}" '
             f'fill="#fafbfc"/>']
    for exponent in range(round(math.log2(LEAST)), round(math.log2(MOST)) + 1):
        strong = exponent == 0
        parts.append(f'<path d="M{left:.1f} {y.at(2.0 ** exponent):.1f} H{right:.1f}" '
                     f'stroke="{FAINT if strong else GRID}" stroke-width="{1.4 if strong else 0.8}"/>')
        if left == LEFT:
            parts.append(text(left - 6, y.at(2.0 ** exponent) + 4, f"{2.0 ** exponent:g}x", 10, FAINT, "end"))
    return parts + lines(points, size_axis(shown, name, left, right), y)


def lines(points, x, y):
    parts = []
    for state in reversed(states(points)):
        for memory in memories(points):
            of = sorted((p["bytes"], 1 / p["ratio"]) for p in points
                        if p["memory"] == memory and p["buffers"] == state)
            if not of:
                continue
            pixels = [(x.at(size), y.at(min(MOST, max(LEAST, speed)))) for size, speed in of]
            parts += line(pixels, memory, state)
            if state == "rotating":
                colour = COLOURS[f"collx {memory}"]
                parts += [f'<circle cx="{at:.1f}" cy="{level:.1f}" r="2.3" fill="#ffffff" stroke="{colour}" '
                          'stroke-width="1.5"/>' for at, level in pixels]
    return parts


def size_ticks(sizes, axis, bottom):
    """As many labels as fit, the last one always."""
    parts, last = [], float("inf")
    for size in reversed(sizes):
        x = axis.at(size)
        if last - x < 48:
            continue
        last = x
        parts.append(f'<path d="M{x:.1f} {bottom} v4" stroke="{FAINT}"/>')
        parts.append(text(x, bottom + 17, human_bytes(size), 10, FAINT, "middle"))
    return parts
