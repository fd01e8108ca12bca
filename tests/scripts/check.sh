#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Asks each script for help, and for what it does not know. None of them finds a program that could do anything.
#   check.sh FOLDER_OF_THE_SCRIPTS
set -uo pipefail

folder=$1
wrong=0
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
for tool in bash dirname sed env id; do ln -s "$(command -v "$tool")" "$tools/$tool"; done

# expect STATUS WORDS SCRIPT ARGUMENT...   ends with that status, and says these words in its first line
expect() {
  local status=$1 words=$2 script=$3 said code
  shift 3
  said=$(PATH=$tools bash "$folder/$script" "$@" 2>&1)
  code=$?
  [ "$code" = "$status" ] && [[ ${said%%$'\n'*} == *"$words"* ]] && return
  printf '%s %s ended with %s, not %s, or did not say "%s" first:\n%s\n' "$script" "$*" "$code" "$status" "$words" "$said"
  wrong=1
}

for flag in --help -h; do
  expect 0 'Installs what is missing' test.sh $flag
  expect 0 'From a bare Debian 12' quickstart.sh $flag
  expect 0 'Everything that only a GPU can show' gpu_check.sh $flag
  expect 0 'Prints what each kernel' kernel_resources.sh $flag
  expect 0 'Reads what the kernels of collx' memory_scopes.sh $flag
  expect 0 'Proves that the two commands' fresh_root_check.sh $flag
done
expect 2 "no preset 'release' with tests; say dev, gcc, asan-ubsan or tsan" test.sh release
expect 2 "no preset '-R'" test.sh -R algo
expect 2 "unknown stage 'bulid'; there are build, tests" gpu_check.sh bulid
expect 2 'no folder build/nowhere' kernel_resources.sh build/nowhere
expect 2 'no folder build/nowhere' memory_scopes.sh build/nowhere
expect 2 'no script quickstart.sh' fresh_root_check.sh quickstart.sh
exit $wrong
