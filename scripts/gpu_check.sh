#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that only a GPU can show, in stages that each end within ten minutes on a machine of 16 cores with one
# GPU: builds for that GPU, runs the GPU tests, compute-sanitizer and the benchmarks, and ends with a table. Needs nvcc
# 13 and CMake; uses what is in this repository and installs nothing, so that it runs where there is no network.
# Without a GPU it says so and succeeds.
#   scripts/gpu_check.sh [STAGE [FOLDER]]   STAGE: build, tests, sanitizers, benchmarks or all (all); run: the three
#                                           after build, which together take no longer than one stage may;
#                                           FOLDER: of the build and the logs (build/gpu). What is built goes into
#                                           FOLDER/programs, which is all that the other stages need
#   COLLX_GPU_ARCHITECTURE  90, say: what to build for, where there is no such GPU
#   COLLX_GPU_STAGE_S       seconds that a stage may take (530, and 10 more for what does not end when it is told to);
#                           what does not fit is told, and fails
#   OUT                     if set: a folder that gets gpu_check_STAGE.txt (the table), gpu_check_STAGE.log (all
#                           output) and gpu_check_STAGE.clocks, each as it comes: also if this is ended from outside
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

stage=${1:-all}
if [[ ! $stage =~ ^(build|tests|sanitizers|benchmarks|run|all)$ ]]; then
  echo "error: unknown stage '$stage'; there are build, tests, sanitizers, benchmarks, run and all" >&2
  exit 2
fi

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi --list-gpus >/dev/null 2>&1; }
if ! has_gpu && [ "$stage ${COLLX_GPU_ARCHITECTURE:+given}" != 'build given' ]; then
  echo "SKIPPED: no GPU"
  exit 0
fi

folder=${2:-build/gpu}
programs=$folder/programs
PATH=$PATH:/usr/local/cuda/bin
# Ranks that wait in vain are to be heard of, well within the limits below, and CUDA may take seconds to start up in
# several processes at once. A kernel must not be loaded, nor a stream share a queue, while another rank's kernel waits
# (docs/gpu_collectives.md).
export COLLX_TIMEOUT_US=${COLLX_TIMEOUT_US:-30000000} CUDA_MODULE_LOADING=EAGER CUDA_DEVICE_MAX_CONNECTIONS=32
kept=${OUT:-$folder}/gpu_check_$stage
failed=0
ends=0
say() { printf '\n== %s\n' "$*" | tee -a "$kept.log"; }
note() { printf '%-34s %5d s  %s\n' "$1" "$2" "$3" >>"$kept.txt"; }

# check NAME LIMIT COMMAND...   for at most LIMIT seconds, or what is left of the stage's; keeps the output in
# FOLDER/NAME.log
check() {
  local name=$1 limit=$2 began=$SECONDS left=$((ends - SECONDS)) code outcome=passed
  local log=$folder/$name.log
  shift 2
  [ "$limit" -le "$left" ] || limit=$left
  if [ "$limit" -le 0 ]; then
    note "$name" 0 "FAILED: not run, the stage's time was up"
    failed=1
    return 1
  fi
  say "$name"
  # Tests then end themselves a little earlier, and say where each rank stands.
  COLLX_TEST_TIMEOUT_S=$limit timeout --kill-after=10 "$limit" "$@" 2>&1 | tee "$log" | tee -a "$kept.log"
  code=${PIPESTATUS[0]}
  if grep -q 'Device not supported' "$log"; then
    outcome='SKIPPED: compute-sanitizer does not support this device here'
  elif [ "$code" = 124 ] || [ "$code" = 137 ]; then
    outcome="FAILED: not done after $limit s"
  elif [ "$code" != 0 ]; then
    outcome="FAILED: status $code"
  elif grep -q 'SKIPPED: no GPU' "$log"; then
    # There is one, or nobody would have got here: nothing of what this program is for has run.
    outcome='FAILED: nvidia-smi sees a GPU, and CUDA does not'
  elif grep -q '^SKIPPED:' "$log"; then
    outcome=$(grep -m 1 '^SKIPPED:' "$log")
  fi
  note "$name" $((SECONDS - began)) "$outcome"
  [[ $outcome != FAILED* ]] || failed=1
  [[ $outcome != FAILED* ]]
}

benchmarks() { sed -n 's/^foreach(name IN ITEMS \(.*\))$/\1/p' tests/cuda/CMakeLists.txt | tr ' ' '\n'; }

# Programs to build: every test here, what is measured, and the example.
targets() {
  local source
  for source in tests/cuda/*.cu; do echo "test_cuda_$(basename "$source" .cu)"; done
  benchmarks
  echo train_digits_gpu
}

run_build() {
  local capability=${COLLX_GPU_ARCHITECTURE:-} generator='Unix Makefiles' wanted made
  [ -n "$capability" ] ||
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
  ! command -v ninja >/dev/null || generator=Ninja
  mapfile -t wanted < <(targets)
  made=$(commit)
  rm -rf "$programs"  # or those of an earlier tree would be tested if this one does not build
  check configure 120 cmake --preset cuda -G "$generator" -B "$folder" -DCMAKE_CUDA_ARCHITECTURES="$capability" \
    -DCMAKE_BUILD_TYPE=Release -DCOLLX_WARNINGS_AS_ERRORS=OFF &&
    check build 540 cmake --build "$folder" -j "$(nproc)" --target "${wanted[@]}" || return
  check kernel_resources 60 scripts/kernel_resources.sh "$folder"
  mkdir -p "$programs"
  if ! cp "${wanted[@]/#/$folder/tests/cuda/}" "$programs/"; then
    note programs 0 "FAILED: not copied to $programs"
    failed=1
    rm -rf "$programs"
    return
  fi
  echo "$made" >"$programs/commit"
}

# Which part it is, where ranks that are threads wait in vain.
narrow_down() {
  local setting
  for setting in COLLX_CUDA_PACKET_BYTES=0 COLLX_CUDA_LANES=1; do
    COLLX_TIMEOUT_US=5000000 check "threads_with_$setting" 45 env "$setting" \
      "$programs/test_cuda_collectives" threads 2 small
  done
}

run_tests() {
  local program ranks
  for program in $(targets); do
    [[ $program != test_cuda_* || -x $programs/$program ]] && continue
    note "$program" 0 "FAILED: not in $programs; build again, or carry all of it"
    failed=1
  done
  # First what depends on least; windows of other kinds after collectives over those of the usual one.
  for program in "$programs"/test_cuda_*; do
    [[ $program != */test_cuda_@(collectives|window_handles) ]] && check "$(basename "$program")" 90 "$program"
  done
  check collectives_as_threads 120 "$programs/test_cuda_collectives" threads || narrow_down
  check collectives_as_processes 150 "$programs/test_cuda_collectives" processes 4
  check test_cuda_window_handles 90 "$programs/test_cuda_window_handles"
  # The data by name: programs may have been built elsewhere.
  for ranks in 1 2; do
    check "train_digits_gpu_$ranks" 90 "$programs/train_digits_gpu" "$ranks" examples/data/digits.csv
  done
  # Last, for processes take turns on a GPU.
  check collectives_as_8_processes 120 "$programs/test_cuda_collectives" processes 8 small
}

# Collectives as processes: the sanitizer runs the kernels of each one after the other, which ranks that are threads
# would wait for in vain. Small ones, and longer waits: it makes kernels many times slower. The process that starts
# the ranks never uses CUDA, and what the tests misuse on purpose CUDA refuses: neither is an error.
run_sanitizers() {
  local tool options
  if ! command -v compute-sanitizer >/dev/null; then
    note compute-sanitizer 0 'SKIPPED: not installed'
    return
  fi
  for tool in memcheck racecheck synccheck; do
    options=(--tool "$tool" --target-processes all --require-cuda-init no --error-exitcode 1)
    [ "$tool" != memcheck ] || options+=(--report-api-errors no)
    # Kernels that wait for nobody, whatever the tool thinks of several processes.
    check "combine_$tool" 45 compute-sanitizer "${options[@]}" "$programs/test_cuda_combine_structs" small
    COLLX_TIMEOUT_US=100000000 check "collectives_$tool" 135 compute-sanitizer "${options[@]}" \
      "$programs/test_cuda_collectives" processes 2 tools
  done
}

# judge PROGRAM   puts into the table what it measured that has a limit, "RESULT name value <= limit" or ">=", and
# fails where one is missed, or there is none
judge() {
  local log=$folder/$1.log name value sign limit outcome found=0
  while read -r _ name value sign limit; do
    found=1
    outcome="FAILED: wanted $sign $limit"
    if awk -v value="$value" -v sign="$sign" -v limit="$limit" 'BEGIN {
        number = "^-?[0-9]+([.][0-9]+)?$"
        if (value !~ number || limit !~ number) exit 1
        exit !(sign == "<=" ? value + 0 <= limit + 0 : sign == ">=" && value + 0 >= limit + 0) }'; then
      outcome="passed, wanted $sign $limit"
    else
      failed=1
    fi
    printf '%-34s %9s  %s\n' "$name" "$value" "$outcome" >>"$kept.txt"
  done < <(grep '^RESULT ' "$log")
  [ $found = 0 ] || return
  note "$1" 0 'FAILED: it measured nothing that has a limit'
  failed=1
}

run_benchmarks() {
  local program
  [ -n "$(benchmarks)" ] || failed=1
  while read -r program; do
    check "$program" 120 "$programs/$program" </dev/null && ! grep -q '^SKIPPED:' "$folder/$program.log" && judge "$program"
  done < <(benchmarks)
}

run_stage() {
  ends=$((SECONDS + ${COLLX_GPU_STAGE_S:-530}))
  case $1 in
    build) run_build ;;
    tests) run_tests ;;
    sanitizers) run_sanitizers ;;
    benchmarks) run_benchmarks ;;
    run)  # what is slow and tells least comes last
      run_tests
      run_benchmarks
      run_sanitizers
      ;;
  esac
}

commit() { git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown; }
# Of what is tested: programs may be older than the tree.
commit_of_programs() {
  if [[ $stage =~ ^(build|all)$ ]] || ! cat "$programs/commit" 2>/dev/null; then commit; fi
}

# Somebody has to have the GPU open, or its driver starts it anew for each program, for seconds. And clocks say
# what times are worth.
keep_open() {
  nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,temperature.gpu,power.draw,utilization.gpu \
    --format=csv,noheader --loop=5 >"$kept.clocks" 2>&1 &
  # shellcheck disable=SC2064  # that process
  trap "kill $! 2>/dev/null" EXIT
}

mkdir -p "$folder" "$(dirname "$kept")"
: >"$kept.log"
{
  if has_gpu; then
    nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader
  else
    echo "no GPU; for $COLLX_GPU_ARCHITECTURE"
  fi
  printf 'commit %s, %s\n' "$(commit_of_programs)" "$(date -u +%F)"
} | tee "$kept.txt"
! has_gpu || keep_open
case $stage in
  all)
    run_stage build
    [ $failed != 0 ] || for part in tests sanitizers benchmarks; do run_stage $part; done
    ;;
  *) run_stage "$stage" ;;
esac

say
cat "$kept.txt"
exit $failed
