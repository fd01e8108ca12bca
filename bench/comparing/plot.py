# SPDX-License-Identifier: Apache-2.0
"""Draws one collective as SVG: time per call on the left, how much faster than the best peer on the right."""
import math
from types import SimpleNamespace
from xml.sax.saxutils import escape

from comparing.report import human_bytes, title
from comparing.summary import compared

WIDTH, HEIGHT = 1080, 460
TOP, BOTTOM = 92, 396
PANELS = {"time": (74, 520), "speed": (624, 1040)}
INK, FAINT, GRID = "#1d2329", "#66717c", "#e3e7eb"
COLOURS = {"collx private": "#0b62c4", "collx symmetric": "#12a594", "openmpi": "#d9730d", "mpich": "#a3443b",
           "gloo": "#8a63b8", "limit": "#8c959e"}
LABELS = {"openmpi": "Open MPI", "mpich": "MPICH", "gloo": "Gloo", "limit": "limit"}
DASHES = {"openmpi": "6 4", "mpich": "6 4", "gloo": "6 4", "limit": "1.5 3"}


class Axis:
    """A logarithmic axis from data to pixels. Zero, where it occurs, sits one step below the smallest."""

    def __init__(self, values, begin, end, base, snap=False):
        positive = [value for value in values if value > 0] or [1]
        self.low, self.high, self.base = min(positive), max(positive), base
        self.floor = self.low / base if min(values, default=1) <= 0 else self.low
        low, high = math.log(self.floor, base), math.log(self.high, base)
        if snap:
            low, high = math.floor(low), math.ceil(high)
        if high - low < 1e-9:
            low, high = low - 1, high + 1
        self.from_exponent, self.to_exponent = low, high
        self.begin, self.end = begin, end

    def at(self, value):
        exponent = math.log(value if value > 0 else self.floor, self.base)
        part = (exponent - self.from_exponent) / (self.to_exponent - self.from_exponent)
        return self.begin + part * (self.end - self.begin)


def write_points(points, path):
    """All of one collective, on one number of ranks, with one state of the buffers."""
    write(points, request_of(points), path)


def request_of(points):
    first = points[0]
    distinct = {name: list(dict.fromkeys(point[name] for point in points)) for name in ("bytes", "memory")}
    return SimpleNamespace(collective=first["collective"], ranks=first["ranks"], transport=first["transport"],
                           place=first["place"], congestion=first.get("congestion"),
                           network=first.get("network"), bytes=distinct["bytes"],
                           memory=[memory for memory in distinct["memory"] if memory],
                           peers=[peer for peer in LABELS if peer in first["peers_us"]])


def write(points, asked, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(draw(points, asked))


def draw(points, asked):
    lines = series(points, asked)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
             f'height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
             text(PANELS["time"][0], 30, title(asked), 17, weight="bold")]
    parts += legend(lines)
    parts += time_panel(lines, asked)
    parts += speed_panel(points, asked)
    return "\n".join(parts + ["</svg>"]) + "\n"


def series(points, asked):
    """name -> [(bytes, us)], collx first."""
    lines = {}
    for memory in asked.memory:
        lines[f"collx {memory}"] = [(p["bytes"], p["collx_us"]) for p in points if p["memory"] == memory]
    one_memory = [p for p in points if p["memory"] == points[0]["memory"]]
    for peer in asked.peers:
        lines[peer] = [(p["bytes"], p["peers_us"][peer]) for p in one_memory if peer in p["peers_us"]]
    lines["limit"] = [(p["bytes"], p["limit_us"]) for p in one_memory if p["limit_us"]]
    return {name: sorted(line) for name, line in lines.items() if line}


def text(x, y, words, size=12, colour=INK, anchor="start", weight="normal", turn=None):
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn is not None else ""
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
            f'font-weight="{weight}"{turned}>{escape(words)}</text>')


def legend(lines):
    parts, x = [], PANELS["time"][0]
    for name in lines:
        parts.append(curve([(x, 50), (x + 26, 50)], name))
        parts.append(text(x + 33, 54, LABELS.get(name, name), 13))
        x += 60 + 7.4 * len(LABELS.get(name, name))
    return parts


def curve(pixels, name, dots=False):
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in pixels)
    dash = f' stroke-dasharray="{DASHES[name]}"' if name in DASHES else ""
    drawn = (f'<path d="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2.2" '
             f'stroke-linejoin="round"{dash}/>')
    if dots:
        drawn += "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.1" fill="#ffffff" stroke="{COLOURS[name]}" '
                         f'stroke-width="1.8"/>' for x, y in pixels)
    return drawn


def size_axis(asked, panel):
    return Axis(asked.bytes, panel[0] + 14, panel[1] - 14, 2)


def frame(panel, title):
    left, right = panel
    return [text(left, TOP - 12, title, 13, FAINT),
            f'<path d="M{left} {BOTTOM} H{right}" stroke="{FAINT}" stroke-width="1"/>']


def size_ticks(asked, axis):
    """As many labels as fit, spread over the sizes."""
    parts, last = [], -1e9
    for size in sorted(asked.bytes):
        x = axis.at(size)
        if x - last < 52:
            continue
        last = x
        parts.append(f'<path d="M{x:.1f} {BOTTOM} v5" stroke="{FAINT}"/>')
        parts.append(text(x, BOTTOM + 20, human_bytes(size), 11, FAINT, "middle"))
    return parts


def level(panel, y, label, colour=GRID, width=1.0):
    left, right = panel
    return [f'<path d="M{left} {y:.1f} H{right}" stroke="{colour}" stroke-width="{width}"/>',
            text(left - 8, y + 4, label, 11, FAINT, "end")]


def short_time(us):
    for unit_us, unit in ((1e6, "s"), (1e3, "ms"), (1, "\u00b5s"), (1e-3, "ns")):
        if us >= unit_us * 0.999:
            return f"{us / unit_us:g} {unit}"
    return f"{us * 1e3:g} ns"


def time_panel(lines, asked):
    panel = PANELS["time"]
    x = size_axis(asked, panel)
    y = Axis([us for line in lines.values() for _, us in line], BOTTOM, TOP, 10, snap=True)
    parts = []
    for exponent in range(round(y.from_exponent), round(y.to_exponent) + 1):
        parts += level(panel, y.at(10.0 ** exponent), short_time(10.0 ** exponent))
    parts += frame(panel, "time per call") + size_ticks(asked, x)
    for name in reversed(list(lines)):  # collx last, on top
        parts.append(curve([(x.at(size), y.at(us)) for size, us in lines[name]], name, dots=True))
    parts.append(text((panel[0] + panel[1]) / 2, BOTTOM + 46, "bytes of the vector", 12, FAINT, "middle"))
    return parts


def speed_panel(points, asked):
    shown = compared(points)
    if not shown:
        return []
    panel = PANELS["speed"]
    x = size_axis(asked, panel)
    speeds = [1 / p["ratio"] for p in shown]
    y = Axis(speeds + [1.0], BOTTOM, TOP, 2, snap=True)
    parts = []
    for exponent in range(round(y.from_exponent), round(y.to_exponent) + 1):
        strong = exponent == 0
        parts += level(panel, y.at(2.0 ** exponent), f"{2.0 ** exponent:g}x", FAINT if strong else GRID,
                       1.4 if strong else 1.0)
    parts += frame(panel, "times faster than the best peer") + size_ticks(asked, x)
    for memory in asked.memory:
        line = sorted((p["bytes"], 1 / p["ratio"]) for p in shown if p["memory"] == memory)
        if not line:
            continue
        parts.append(curve([(x.at(size), y.at(speed)) for size, speed in line], f"collx {memory}", dots=True))
    parts.append(text((panel[0] + panel[1]) / 2, BOTTOM + 46, "bytes of the vector", 12, FAINT, "middle"))
    return parts
