#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stands before nvcc in the build (CUDA_COMPILER_LAUNCHER): has ptxas say which registers and stack each kernel uses,
# and keeps that beside the object file, as OBJECT.resources, for scripts/kernel_resources.sh.
set -u

object=
for ((i = 1; i < $#; ++i)); do
  [ "${!i}" != -ptx ] || exec "$@"  # has no registers yet
  [ "${!i}" != -o ] || { next=$((i + 1)) && object=${!next}; }
done
[ -n "$object" ] || exec "$@"

said=$object.said
"$@" --resource-usage 2>"$said"
status=$?
grep '^ptxas info\|bytes stack frame' "$said" >"$object.resources"
grep -v '^ptxas info\|bytes stack frame' "$said" >&2
rm -f "$said"
exit $status
