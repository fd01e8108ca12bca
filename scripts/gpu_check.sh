#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that only a GPU can show: builds for the GPU of this machine, runs the GPU tests, compute-sanitizer
# and the benchmarks, and ends with a table of them. Needs nvcc 13 and CMake; installs nothing, so that it runs
# where there is no network. Without a GPU it says so and succeeds.
#   scripts/gpu_check.sh [FOLDER]      FOLDER: for the build and the logs (build/gpu)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi --list-gpus >/dev/null 2>&1; then
  echo "SKIPPED: no GPU"
  exit 0
fi

folder=${1:-build/gpu}
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
  # 9.0 has instructions of its own ("90a"); nothing here needs them.
  cmake --preset cuda -B "$folder" -DCMAKE_CUDA_ARCHITECTURES="$capability" -DCMAKE_BUILD_TYPE=Release &&
    cmake --build "$folder" -j "$(nproc)"
}

mkdir -p "$folder"
nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader | tee "$folder/device.log"
check build build

if [ $failed = 0 ]; then
  for program in "$folder"/tests/cuda/test_cuda_*; do
    [ -x "$program" ] && [ -f "$program" ] && check "$(basename "$program")" timeout 300 "$program"
  done
  if command -v compute-sanitizer >/dev/null; then
    # One rank: the sanitizer runs kernels one after the other, and ranks wait for each other.
    for tool in memcheck racecheck; do
      COLLX_GPU_TEST_RANKS=1 check "collectives_$tool" timeout 300 compute-sanitizer --tool $tool \
        --error-exitcode 1 "$folder/tests/cuda/test_cuda_collectives"
    done
  else
    table+=("compute-sanitizer                           SKIPPED: not installed")
  fi
  check kernel_resources scripts/kernel_resources.sh "$folder"
  for ranks in 1 2 4; do check "train_digits_gpu_$ranks" timeout 120 "$folder/tests/cuda/train_digits_gpu" $ranks; done
  for program in reduce_bandwidth all_reduce_on_gpu; do check $program timeout 300 "$folder/tests/cuda/$program"; done
fi

say "$(cat "$folder/device.log")"
printf '%s\n' "${table[@]}"
exit $failed
