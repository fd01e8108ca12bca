# SPDX-License-Identifier: Apache-2.0
"""Where a point comes from: which code, on which processor, on which day. Points of two codes or two machines
are no table."""
import hashlib
import subprocess
import time

from comparing import builds

UNKNOWN = "unknown"
MEASURED_CODE = ["include", "bench", "cmake", "CMakeLists.txt"]


class Mixture(Exception):
    """Points that are there already come from elsewhere."""


def git(*words):
    """None where there is no repository, or no git."""
    try:
        done = subprocess.run(["git", "-C", builds.ROOT, *words], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


def commit():
    """With what is changed in the code and not committed, if anything is, as a number."""
    head = git("rev-parse", "--short=10", "HEAD")
    if head is None:
        return UNKNOWN
    changes = git("diff", "HEAD", "--", *MEASURED_CODE)
    return head.decode().strip() + (f"+{hashlib.sha1(changes).hexdigest()[:8]}" if changes else "")


def cpu(path="/proc/cpuinfo"):
    """Its name, and what tells those apart that a virtual machine calls by one name."""
    found = {}
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                name, _, value = line.partition(":")
                found.setdefault(name.strip(), value.strip())
    except OSError:
        return UNKNOWN
    if "model name" not in found:
        return UNKNOWN
    return f"{found['model name']}, family {found.get('cpu family', '?')}, model {found.get('model', '?')}"


def here():
    """For every point measured now."""
    return {"commit": commit(), "cpu": cpu(), "date": time.strftime("%Y-%m-%d", time.gmtime())}


def said(point):
    """Points of earlier versions say nothing."""
    return point.get("commit"), point.get("cpu")


def require_same(points, now):
    for point in points:
        if said(point) != said(now):
            commit_there, cpu_there = (each or "nobody knows which" for each in said(point))
            raise Mixture(f"the points there are of commit {commit_there} on {cpu_there}, and this is "
                          f"{now['commit']} on {now['cpu']}; write to another file, or say --mix")


def line(points):
    """For a summary."""
    dates = sorted({point["date"] for point in points if "date" in point})
    codes = sorted({point.get("commit") or "not noted" for point in points})
    cpus = sorted({point.get("cpu") or "not noted" for point in points})
    if not dates:
        return ""
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    mixed = " (mixed: no table of one code on one processor)" if max(len(codes), len(cpus)) > 1 else ""
    return f"commit {' and '.join(codes)}; {' and '.join(cpus)}; {days}{mixed}"
