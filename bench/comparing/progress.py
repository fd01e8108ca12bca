# SPDX-License-Identifier: Apache-2.0
"""A bar with the time left, on stderr; a line now and then where that is no terminal."""
import sys
import time

SECONDS_BETWEEN_LINES = 10


def human_seconds(seconds):
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


class Progress:
    """Counts programs started, each by how long it takes relative to the others."""

    def __init__(self, total, out=sys.stderr, now=time.monotonic):
        self.total, self.done, self.out, self.now = total, 0, out, now
        self.begun = now()
        self.last_line = float("-inf")
        self.is_drawn = False

    def step(self, label, name, weight=1):
        """A program of `weight` begins."""
        self.show(label, name)
        self.done += weight

    def show(self, label, name):
        left = self.left()
        share = min(1, self.done / self.total) if self.total else 1
        if self.out.isatty():
            bar = "#" * int(30 * share)
            print(f"\r\033[K[{bar:<30}] {100 * share:3.0f} % {label}: {name}  {left}", end="", file=self.out,
                  flush=True)
            self.is_drawn = True
        elif self.now() - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = self.now()
            print(f"{100 * share:3.0f} % {label}: {name}  {left}", file=self.out, flush=True)

    def left(self):
        elapsed = self.now() - self.begun
        if self.done == 0 or elapsed <= 0:
            return ""
        return f"{human_seconds(elapsed / self.done * max(0, self.total - self.done))} left"

    def clear(self):
        """Before something else is printed."""
        if self.is_drawn:
            print("\r\033[K", end="", file=self.out, flush=True)
            self.is_drawn = False

    def note(self, text):
        self.clear()
        print(f"note: {text}", file=self.out, flush=True)
