# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/compare: programs (build, launch), rounds (run, interleave), report, plot."""
