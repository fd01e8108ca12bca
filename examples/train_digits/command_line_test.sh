#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# command_line_test.sh PROGRAM: what train_digits answers to mistakes, by exit status and by message.
set -u
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect STATUS TEXT argument...: the run must end with STATUS, and TEXT must stand in its output.
expect() {
  status=$1 text=$2
  shift 2
  "$program" "$@" >"$scratch/output" 2>&1
  got=$?
  if [ $got -ne "$status" ] || ! grep -qF -- "$text" "$scratch/output"; then
    echo "FAILED: train_digits $*"
    echo "  wanted status $status and '$text', got status $got and:"
    sed 's/^/  | /' "$scratch/output"
    failures=$((failures + 1))
  fi
}

expect 0 "usage: train_digits" --help
expect 2 "unknown option '--rnks'" --rnks 2
expect 2 "--ranks wants a number from 1 to 128, not '0'" --ranks 0
expect 2 "not '1000000'" --ranks 1000000
expect 2 "not 'two'" --ranks two
expect 2 "not ''" --ranks
expect 2 "unknown algorithm 'bogus'; there are: composed" --algorithm bogus
expect 0 "epoch 2/2  loss 0." --epochs 2 --require-accuracy 10
for said in "time per step: " "communication" "share of run" "gradient and loss" "same model as 1 rank: within rounding"; do
  grep -qF -- "$said" "$scratch/output" && continue
  echo "FAILED: train_digits does not say '$said'"
  failures=$((failures + 1))
done
expect 3 "cannot open /no/such/file" --data /no/such/file
expect 1 "BELOW the required 100 %" --epochs 1 --require-accuracy 100
expect 5 "lower --learning-rate" --learning-rate 10 --epochs 20
expect 5 "lower --learning-rate" --learning-rate 10 --epochs 20 --reproducible

head -n 100 "$(dirname "$0")/../data/digits.csv" >"$scratch/short.csv"
expect 3 "short.csv:101: the file ends after 100 of 1797 images" --data "$scratch/short.csv"

[ $failures -eq 0 ] && echo "all answers as expected"
exit $failures
