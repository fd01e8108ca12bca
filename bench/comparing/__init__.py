# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/compare: groups (what is asked), builds and programs (build, launch), rounds and
progress (run, interleave), network (where TCP runs), report and summary (tables, JSON), doubts
and origin (what is said against them), require (what scripts ask), plot and overview (SVG)."""
