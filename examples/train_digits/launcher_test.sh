#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# launcher_test.sh PROGRAM: does what a launcher does. Starts three ranks of train_digits with their
# place in the world in the environment, and asks that all of them end well.
set -u
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export WORLD_SIZE=3 COLLX_RENDEZVOUS="$scratch/rendezvous"

pids=
for rank in 0 1 2; do
  RANK=$rank LOCAL_RANK=$rank "$program" --reproducible >"$scratch/rank_$rank" 2>&1 &
  pids="$pids $!"
done
failures=0
for pid in $pids; do
  wait "$pid" || failures=$((failures + 1))
done
cat "$scratch"/rank_*
grep -qF "3 processes over shared memory" "$scratch/rank_0" || failures=$((failures + 1))
grep -qF "same model as 1 rank: yes (bit for bit)" "$scratch/rank_0" || failures=$((failures + 1))

# A launcher decides how many ranks there are: saying it twice is refused.
RANK=0 "$program" --ranks 2 >"$scratch/twice" 2>&1
[ $? -eq 2 ] && grep -qF "the launcher decides" "$scratch/twice" || failures=$((failures + 1))
exit $failures
