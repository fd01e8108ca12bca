#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What scripts/gpu_check.sh makes of programs that pass, fail and skip themselves.
#   check.sh SOURCE_DIRECTORY FOLDER
set -uo pipefail

script=$1/scripts/gpu_check.sh
folder=$2
wrong=0
rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/build/programs"

# play NAME COMMANDS   a program that does this
play() {
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$folder/$1"
  chmod +x "$folder/$1"
}

# expect STATUS STAGE LINE...   the stage ends with that status, and prints lines that match all of these
expect() {
  local status=$1 stage=$2 said code line before=$wrong
  wrong=0
  shift 2
  said=$(env -u OUT -u COLLX_TIMEOUT_US PATH="$folder/bin:$PATH" COLLX_GPU_STAGE_S=100000 "$script" "$stage" "$folder/build" 2>&1)
  code=$?
  if [ "$code" != "$status" ]; then
    echo "stage $stage ended with $code, not $status"
    wrong=1
  fi
  for line in "$@"; do
    grep -q -E -e "$line" <<<"$said" && continue
    echo "stage $stage does not say: $line"
    wrong=1
  done
  [ "$wrong" = 0 ] || echo "$said"
  [ "$before" = 0 ] || wrong=1
}

play bin/nvidia-smi 'exit 9'
expect 0 tests '^SKIPPED: no GPU$'

play bin/nvidia-smi 'echo "a GPU, 1, 9.0, 2 MiB"'
play bin/compute-sanitizer 'echo "$*"'
programs=build/programs
for source in "$1"/tests/cuda/*.cu; do play "$programs/test_cuda_$(basename "$source" .cu)" 'true'; done
play $programs/test_cuda_one 'echo one'
play $programs/test_cuda_window_handles 'echo windows'
# shellcheck disable=SC2016  # for the program that is played
play $programs/test_cuda_collectives 'echo "$COLLX_TEST_TIMEOUT_S s, $COLLX_TIMEOUT_US us"'
# shellcheck disable=SC2016
play $programs/train_digits_gpu 'echo 95 %; test -s "$2"'
ranks_pass='^collectives_as_threads +[0-9]+ s  passed$'
expect 0 tests '^test_cuda_one +[0-9]+ s  passed$' '^test_cuda_window_handles +[0-9]+ s  passed$' "$ranks_pass" '^120 s, 30000000 us$' '^train_digits_gpu_2 .* passed$' \
  '^collectives_as_8_processes +[0-9]+ s  passed$'
play $programs/test_cuda_combine_structs 'echo "structs $*"'
expect 0 sanitizers '^collectives_memcheck +[0-9]+ s  passed$' '^collectives_racecheck ' '^collectives_synccheck ' \
  "--tool memcheck .*$programs/test_cuda_collectives processes 2 tools" \
  "--tool racecheck .*$programs/test_cuda_combine_structs small" '^combine_synccheck +[0-9]+ s  passed$'

# Where ranks that are threads fail it is asked which part it is.
# shellcheck disable=SC2016
play $programs/test_cuda_collectives 'echo "$* ${COLLX_CUDA_LANES-16} ${COLLX_CUDA_PACKET_BYTES-4096}"; [ "$1" != threads ]'
expect 1 tests '^collectives_as_threads .*FAILED: status 1$' '^threads 2 small 1 4096$' '^threads 2 small 16 0$' \
  '^threads_with_COLLX_CUDA_LANES=1 .*FAILED' '^collectives_as_processes .* passed$'

# What has come is kept, also if somebody ends the script.
# shellcheck disable=SC2016
play $programs/test_cuda_collectives 'echo the end; until grep -q "^the end$" "$OUT/gpu_check_tests.log"; do sleep 0.01; done; kill -KILL "$(cut -d " " -f 4 "/proc/$PPID/stat")"'
(COLLX_GPU_STAGE_S=100000 OUT="$folder/kept" PATH="$folder/bin:$PATH" "$script" tests "$folder/build") >"$folder/said" 2>&1
if [ $? != 137 ] || ! grep -q '^test_cuda_one .* passed$' "$folder/kept/gpu_check_tests.txt" ||
  ! grep -q '^the end$' "$folder/kept/gpu_check_tests.log"; then
  echo 'of a stage that was ended from outside nothing is kept'
  wrong=1
fi
play $programs/test_cuda_collectives 'true'

# What has not come along is missed.
rm "$folder/$programs/test_cuda_memory_kinds"
expect 1 tests '^test_cuda_memory_kinds .*FAILED: not in ' "$ranks_pass"
play $programs/test_cuda_memory_kinds 'true'

# A program that finds no GPU, where there is one, has shown nothing, be it the whole program or a part.
play $programs/test_cuda_one 'echo "on the device: SKIPPED: no GPU"'
expect 1 tests '^test_cuda_one .*FAILED: nvidia-smi sees a GPU, and CUDA does not$' "$ranks_pass"
# What is not there for another reason is said, and is no failure.
play $programs/test_cuda_one 'echo "SKIPPED: no switch"'
expect 0 tests '^test_cuda_one +[0-9]+ s  SKIPPED: no switch$'
play $programs/test_cuda_one 'exit 3'
expect 1 tests '^test_cuda_one .*FAILED: status 3$' "$ranks_pass"
play bin/compute-sanitizer 'echo "Device not supported"; exit 1'
expect 0 sanitizers '^collectives_memcheck .*SKIPPED: compute-sanitizer does not support this device here$'

# All benchmarks that are built are run, and what they measure is judged.
expect 1 benchmarks '^reduce_bandwidth .*FAILED: status 127$' '^all_reduce_on_gpu .*FAILED' \
  '^matrix_product_interference .*FAILED'
play $programs/reduce_bandwidth 'echo RESULT two 0.91 ">=" 0.9; echo RESULT eight 1 ">=" 0.9'
play $programs/all_reduce_on_gpu 'echo RESULT ring 1.03 "<=" 1.03'
play $programs/matrix_product_interference 'echo RESULT slowed -0.5 "<=" 2'
expect 0 benchmarks '^two +0.91  passed, wanted >= 0.9$' '^eight +1  passed' '^ring +1.03  passed, wanted <= 1.03$' \
  '^slowed +-0.5  passed' '^matrix_product_interference +[0-9]+ s  passed$'
play $programs/all_reduce_on_gpu 'echo RESULT ring 1.04 "<=" 1.03'
expect 1 benchmarks '^ring +1.04  FAILED: wanted <= 1.03$' '^two .* passed' '^slowed .* passed'
play $programs/all_reduce_on_gpu 'echo RESULT ring nan "<=" 1.03'
expect 1 benchmarks '^ring +nan  FAILED: '
play $programs/all_reduce_on_gpu 'echo RESULT ring 1 "=" 1'
expect 1 benchmarks '^ring +1  FAILED: '
play $programs/all_reduce_on_gpu 'echo RESULT ring 1.03 "<=" 1.03'
play bin/compute-sanitizer 'echo "$*"'
play $programs/test_cuda_one 'true'
echo beef >"$folder/$programs/commit"
expect 0 run '^commit beef, ' '^collectives_as_threads .* passed$' '^ring +1.03  passed' '^collectives_synccheck .* passed$'
play $programs/all_reduce_on_gpu 'echo nothing'
expect 1 benchmarks '^all_reduce_on_gpu .*FAILED: it measured nothing that has a limit$'

# To build for a GPU there need be none here.
play bin/nvidia-smi 'exit 9'
cat >"$folder/resources" <<'END'
ptxas info    : Compiling entry function '_ZN5collx5abi_16device11copy_kernelIfEEvNS1_14copy_argumentsIT_EE' for 'sm_90'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers
END
# shellcheck disable=SC2016
play bin/cmake 'echo "cmake $*"
[ "$1" != --build ] || { mkdir -p "$2/tests/cuda" && cp "'"$folder/resources"'" "$2/a.resources" &&
  while [ "$1" != --target ]; do shift; done && cd "'"$folder/build/tests/cuda"'" && touch "${@:2}"; }'
COLLX_GPU_ARCHITECTURE='' expect 0 build '^SKIPPED: no GPU$'
COLLX_GPU_ARCHITECTURE=87 expect 0 build '-DCMAKE_CUDA_ARCHITECTURES=87 ' '^kernel_resources .* passed$'
if [ ! -e "$folder/build/programs/test_cuda_combine_integers" ] || [ ! -s "$folder/build/programs/commit" ]; then
  echo 'programs that were built are not where the other stages look for them'
  wrong=1
fi
# What was built of another tree is not tested if this one does not build.
# shellcheck disable=SC2016
play bin/cmake '[ "$1" != --build ]'
COLLX_GPU_ARCHITECTURE=87 expect 1 build '^build .*FAILED: status 1$'
if [ -e "$folder/build/programs" ]; then
  echo 'programs of an earlier build are left'
  wrong=1
fi
exit $wrong
