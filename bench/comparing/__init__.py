# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/compare: groups (what is asked), builds and programs (build, launch), rounds and
progress (run, interleave), network (where TCP runs), report and summary (tables, JSON), plot and
overview (SVG)."""
