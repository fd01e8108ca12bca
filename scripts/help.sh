# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the other scripts, before they do anything: --help prints the comment at a script's head, and ends it.

if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  sed -n '2,/^[^#]/ { /^# SPDX/d; s/^# \{0,1\}//p }' "$0"
  exit 0
fi
