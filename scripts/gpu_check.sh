#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that only a GPU can show: builds for the GPU of this machine, runs the GPU tests, compute-sanitizer
# and the benchmarks, and ends with a table of them. Needs nvcc 13 and CMake; installs nothing, so that it runs
# where there is no network. Without a GPU it says so and succeeds.
#   scripts/gpu_check.sh [PART [FOLDER]]   PART: build, tests, sanitizers, benchmarks or all (all);
#                                          FOLDER: of the build and the logs (build/gpu)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi --list-gpus >/dev/null 2>&1; then
  echo "SKIPPED: no GPU"
  exit 0
fi

part=${1:-all}
folder=${2:-build/gpu}
# Ranks that wait in vain are to be heard of soon; a kernel must not be loaded, nor a stream share a queue, while
# another rank's kernel waits (docs/gpu_collectives.md).
export COLLX_TIMEOUT_US=${COLLX_TIMEOUT_US:-10000000} CUDA_MODULE_LOADING=EAGER CUDA_DEVICE_MAX_CONNECTIONS=32
table=()
failed=0
say() { printf '\n== %s\n' "$*"; }

# check NAME COMMAND...   keeps the output in FOLDER/NAME.log
check() {
  local name=$1 began=$SECONDS outcome=passed
  shift
  say "$name"
  if ! "$@" 2>&1 | tee "$folder/$name.log"; then
    outcome=FAILED
    failed=1
  elif grep -q '^SKIPPED:' "$folder/$name.log"; then
    outcome=$(grep -m 1 '^SKIPPED:' "$folder/$name.log")
  fi
  table+=("$(printf '%-34s %5d s  %s' "$name" $((SECONDS - began)) "$outcome")")
}

build() {
  local capability
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
  cmake --preset cuda -B "$folder" -DCMAKE_CUDA_ARCHITECTURES="$capability" -DCMAKE_BUILD_TYPE=Release \
    -DCOLLX_WARNINGS_AS_ERRORS=OFF &&
    cmake --build "$folder" -j "$(nproc)"
}

# Collectives as processes: the sanitizer runs the kernels of each one after the other, which ranks that are threads
# would wait for in vain.
sanitized() {
  local log
  log=$(compute-sanitizer --tool "$1" --error-exitcode 1 "$programs/test_cuda_collectives" processes 2 2>&1)
  local outcome=$?
  echo "$log"
  if grep -q 'Device not supported' <<<"$log"; then
    echo "SKIPPED: compute-sanitizer does not support this device here"
    return 0
  fi
  return $outcome
}

run_tests() {
  local program
  check collectives_as_threads timeout 200 "$programs/test_cuda_collectives" threads
  check collectives_as_processes timeout 200 "$programs/test_cuda_collectives" processes
  for program in "$programs"/test_cuda_*; do
    [ -x "$program" ] && [ -f "$program" ] && [ "$program" != "$programs/test_cuda_collectives" ] &&
      check "$(basename "$program")" timeout 120 "$program"
  done
  for ranks in 1 2; do check "train_digits_gpu_$ranks" timeout 120 "$programs/train_digits_gpu" $ranks; done
}

run_sanitizers() {
  if ! command -v compute-sanitizer >/dev/null; then
    table+=("compute-sanitizer                           SKIPPED: not installed")
    return
  fi
  for tool in memcheck racecheck; do check "collectives_$tool" sanitized $tool; done
}

run_benchmarks() {
  for program in reduce_bandwidth all_reduce_on_gpu; do check $program timeout 300 "$programs/$program"; done
}

programs=$folder/tests/cuda
mkdir -p "$folder"
nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader | tee "$folder/device.log"
case $part in
  build) check build build ;;
  tests) run_tests ;;
  sanitizers) run_sanitizers ;;
  benchmarks) run_benchmarks ;;
  all)
    check build build
    if [ $failed = 0 ]; then
      check kernel_resources scripts/kernel_resources.sh "$folder"
      run_tests
      run_sanitizers
      run_benchmarks
    fi
    ;;
  *)
    echo "error: unknown part '$part'; there are build, tests, sanitizers, benchmarks and all" >&2
    exit 2
    ;;
esac

say "$(cat "$folder/device.log")"
printf '%s\n' "${table[@]}"
exit $failed
