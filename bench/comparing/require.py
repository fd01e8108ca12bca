# SPDX-License-Identifier: Apache-2.0
"""--require: what the figures must be, for scripts. What cannot be judged is not reached."""
import argparse
from dataclasses import dataclass

from comparing import summary
from comparing.groups import COLLECTIVES

MEMORIES = ["private", "symmetric"]
DEFAULT = "slower=0"


@dataclass
class Kind:
    value: object    # of points; None: there are none to judge by
    at_most: bool    # otherwise at least
    described: str


def small(points):
    return min((1 / p["ratio"] for p in summary.compared(points)
                if p["collective"] == "all_reduce" and p["bytes"] == 8), default=None)


def slower(points):
    return len(summary.slower(points)) if summary.compared(points) else None


def limit(points):
    return min(map(summary.share, summary.limited(points)), default=None)


KINDS = {
    "mean": Kind(summary.times_faster, False, "times faster in the geometric mean"),
    "slower": Kind(slower, True, "points slower than the best peer by more than the noise"),
    "small": Kind(small, False, "times faster in the slowest all_reduce of 8 B"),
    "limit": Kind(limit, False, "of the limit in the point furthest from it"),
}


@dataclass
class Wish:
    memory: str      # "" for all
    collective: str  # "" for all
    kind: str
    number: float

    def judges(self, point):
        return self.memory in ("", point["memory"]) and self.collective in ("", point["collective"])

    def of(self):
        where = " ".join(filter(None, [self.collective, self.memory and f"{self.memory} memory"]))
        return f"{where}: " if where else ""


def wish(text):
    name, equals, number = text.partition("=")
    *narrows, kind = name.split(".")
    memories = [each for each in narrows if each in MEMORIES]
    collectives = [each for each in narrows if each in COLLECTIVES]
    try:
        if kind not in KINDS or not equals or len(memories) > 1 or len(collectives) > 1:
            raise ValueError
        if len(memories) + len(collectives) != len(narrows):
            raise ValueError
        return Wish("".join(memories), "".join(collectives), kind, float(number))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"wants such as mean=2,slower=0,small=2,limit=0.85,symmetric.mean=3,symmetric.all_gather.limit=0.85 and "
            f"got '{text}'") from None


def wishes(text):
    return [wish(part) for part in text.split(",")]


def unmet(points, wanted):
    """A line for each wish that is not reached."""
    return [line for line in (judged(points, each) for each in wanted) if line]


def judged(points, each):
    kind = KINDS[each.kind]
    of = [p for p in points if each.judges(p)]
    value = kind.value(of)
    if value is None:
        return f"{each.of()}{each.kind}={each.number:g} is required, and there is nothing to judge by"
    mixed = sum(1 for p in of if p.get("mixed"))
    if mixed:
        return f"{each.of()}{each.kind}={each.number:g} is required, and {mixed} points are mixed (--resume)"
    if value <= each.number if kind.at_most else value >= each.number:
        return ""
    bound = "at most" if kind.at_most else "at least"
    return f"{each.of()}{value:.4g} {kind.described}; required: {bound} {each.number:g}"
