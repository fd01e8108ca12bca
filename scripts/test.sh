#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything and runs the tests.
#   scripts/test.sh [PRESET] [ctest arguments]      PRESET: dev (default), gcc, asan-ubsan, tsan
# All but gcc are built by clang++-22 (Debian: clang-22, libclang-rt-22-dev), which takes half of g++'s time, where it
# is to be had, else by the default compiler.
# COLLX_CMAKE_ARGS is handed to cmake (-DCMAKE_CXX_COMPILER=g++, say), COLLX_JOBS limits the jobs (of tests that wait for deadlines
# there are four times as many).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

preset=${1:-dev}
[ $# = 0 ] || shift
if [[ ! $preset =~ ^(dev|gcc|asan-ubsan|tsan)$ ]]; then
  echo "error: there is no preset '$preset' with tests; say dev, gcc, asan-ubsan or tsan, and arguments of ctest" \
       "behind it" >&2
  exit 2
fi

install_missing "${test_tools[@]}"

run=()
if [ "$preset" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then
  # Thread sanitizers, GCC 12's at least, cannot cope with the address randomisation of recent kernels. Containers may
  # not be allowed to choose it.
  run=(setarch "$(uname -m)" -R)
fi

# g++ 12 compiles 1.9 times as long, 1.6 (tsan) to 2.6 times for sanitizers, of which it sees less.
compiler=() named=$(sed -nE 's/.*-DCMAKE_CXX_COMPILER=([^ ]+).*/\1/p' <<<"${COLLX_CMAKE_ARGS:-}")
if [[ $preset != gcc && -z $named ]]; then
  if install_clang; then
    named=clang++-22
    compiler=(-DCMAKE_CXX_COMPILER=$named)
  else
    say "no clang++-22 with its libraries: the default compiler, which takes longer (preset $preset)"
  fi
fi
# CMake forgets whatever else it has been told, sanitizers too, when the compiler changes: it begins anew.
known=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "build/$preset/CMakeCache.txt" 2>/dev/null) || true
[[ -z $named || ${named##*/} == "${known##*/}" ]] || rm -f "build/$preset/CMakeCache.txt"

# All tests are built here, so that it pays to precompile headers (cmake/collx_doctest.cmake) and to compile several tests as
# one unit (cmake/collx_test_directory.cmake). What that may hide is an #include which a test forgot, not one that a header
# did: each of those is compiled alone in the preset gcc.
alone=OFF
[ "$preset" != gcc ] || alone=ON

say "configuring (preset $preset)"
# Who wants a part of the tests says so each time, or the cache would keep it.
# shellcheck disable=SC2086  # several arguments
cmake --preset "$preset" "${compiler[@]}" -DCOLLX_PRECOMPILE_TESTS=ON -DCOLLX_UNITE_TESTS=ON -DCOLLX_TEST_HEADERS=$alone \
  ${COLLX_CMAKE_ARGS:-} >/dev/null

say "building (preset $preset)"
build --preset "$preset"

if [ $# != 0 ]; then
  say "testing (preset $preset)"
  "${run[@]}" ctest --preset "$preset" -j "$(jobs_count)" "$@"
  exit
fi

# What waits for deadlines to pass (label `waits`) keeps no processor busy: more of it at once than processors, beside the
# others.
logs=build/$preset/logs
mkdir -p "$logs"
export COLLX_TEST_SKIPS=$PWD/$logs/skips
rm -f "$COLLX_TEST_SKIPS"
say "testing (preset $preset); what waits is shown at the end"
"${run[@]}" ctest --preset "$preset" -L '^waits$' -j "$((4 * $(jobs_count)))" >"$logs/waits" 2>&1 &
waiting=$!
trap 'kill "$waiting" 2>/dev/null || true' EXIT
failed=()
"${run[@]}" ctest --preset "$preset" -LE '^waits$' -j "$(jobs_count)" 2>&1 | tee "$logs/others" || failed+=("$logs/others")
wait "$waiting" || failed+=("$logs/waits")
say "testing (preset $preset): what waits"
cat "$logs/waits"

if [ -s "$COLLX_TEST_SKIPS" ]; then
  say "test cases that this machine or user lacks something for (preset $preset)"
  sort -u "$COLLX_TEST_SKIPS"
fi

# What failed comes last, in short: for those who see but the end of all this. The two runs share CTest's own files, of which
# the one that ends last leaves its own.
for log in "${failed[@]}"; do
  sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .*\*\*\*(Failed|Timeout|Exception|Not Run).*/\1/p' "$log" |
    while read -r name; do
      say "$name failed (preset $preset); the end of what it said:"
      awk -v name="$name" '/^ *[0-9]+\/[0-9]+ Test +#/ { is_it = index($0, ": " name " ") } /^[0-9]+% tests passed/ { is_it = 0 }
        is_it && !/^ +Start +[0-9]+: /' "$log" | tail -n 20 | cut -c 1-300
    done
done
[ ${#failed[@]} = 0 ]
