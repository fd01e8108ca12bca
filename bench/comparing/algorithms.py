# SPDX-License-Identifier: Apache-2.0
"""The algorithms that collx has, before anything is built: of the table in docs/algorithms.md, which is
written from the library's list, and compared with it by a test."""
import os
import re

from comparing import builds, hosts

TABLE = os.path.join(builds.ROOT, "docs", "algorithms.md")
CHOSEN = ["auto", "selected"]  # by the library


def table(path=TABLE):
    """Names of algorithms by collective; of a barrier, those of an all_reduce too. Empty without a table."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return {}
    sections = re.split(r"^## (\w+)$", text, flags=re.MULTILINE)
    found = {name: re.findall(r"^\| `(\w+)` \|", body, re.MULTILINE)
             for name, body in zip(sections[1::2], sections[2::2])}
    if "barrier" in found:
        found["barrier"] += found.get("all_reduce", [])
    return found


def names(asked, path=TABLE):
    """What --algorithm may name for any of the collectives; nothing where that is not known."""
    if hosts.are_shared(asked):  # has algorithms of its own, in no table
        return []
    by_collective = table(path)
    if any(not by_collective.get(collective) for collective in asked.collectives):
        return []
    return list(dict.fromkeys(CHOSEN + [name for each in asked.collectives for name in by_collective[each]]))
