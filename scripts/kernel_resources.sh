#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints what each kernel of collx uses, per architecture, and fails if one of them keeps anything in local memory:
# spilled registers, or arrays that did not become registers. Kernels that run schedules (exec::) may keep the state
# of a lane there, which functions out of line share: up to 512 bytes, none of them spilled.
#   scripts/kernel_resources.sh [BUILD_DIRECTORY]      default: build/cuda, which has to be built
# Reads what cmake/keep_resource_usage.sh kept while nvcc compiled. Kernels of the tests themselves are not looked at.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"

build=${1:-$(dirname "${BASH_SOURCE[0]}")/../build/cuda}
[ -d "$build" ] || { echo "error: there is no folder $build; build the preset cuda first, or name its folder" >&2; exit 2; }

# ptxas says "... entry function 'NAME' for 'sm_90'", "N bytes stack frame, N bytes spill stores, N bytes spill
# loads" and "Used N registers".
find "$build" -name '*.resources' -exec cat {} + | awk '
  /Compiling entry function/ { split($0, quoted, "\047"); name = quoted[2]; arch = quoted[4] }
  /bytes stack frame/ { stack = $1; stores = $5; loads = $9 }
  /Used [0-9]+ registers/ {
    for (i = 1; i < NF; ++i) if ($i == "Used") registers = $(i + 1)
    printf "%s %d registers, %d bytes of stack, %d spilled, %d read back: %s\n", arch, registers, stack, stores,
      loads, name
  }' | c++filt | sed 's/collx::abi_1:://g' | sort -u | awk '
  !/: void device::|: void exec::|: void detail::/ { next }
  { ++kernels; if ($2 > most) most = $2 }
  /: void (exec|detail)::/ && $4 <= 512 && $8 + $10 == 0 { ++stateful; print; next }
  $4 + $8 + $10 > 0 { ++wrong; printf "LOCAL MEMORY: " }
  { print }
  END {
    printf "%d kernels, at most %d registers; %d keep the state of a lane in local memory, %d anything else\n", kernels,
      most, stateful, wrong
    if (kernels == 0) print "none was found: build the preset cuda first"
    exit kernels == 0 || wrong > 0
  }'
