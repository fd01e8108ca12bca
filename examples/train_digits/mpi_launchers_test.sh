#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mpi_launchers_test.sh PROGRAM: the launchers of Open MPI and MPICH start train_digits over TCP, and it ends with
# the model of one rank. Neither library is linked: only what they leave in the environment is used.
set -u
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
started=0

# check NAME command...
check() {
  name=$1
  shift
  started=$((started + 1))
  if "$@" >"$scratch/$name" 2>&1 && grep -qF "3 processes over TCP" "$scratch/$name" &&
    grep -qF "same model as 1 rank: yes (bit for bit)" "$scratch/$name"; then
    echo "$name: fine"
  else
    echo "$name: FAILED"
    cat "$scratch/$name"
    failures=$((failures + 1))
  fi
}

arguments="--transport tcp --reproducible --epochs 3 --require-accuracy 0"
if command -v mpirun.openmpi >/dev/null; then
  as_root=
  [ "$(id -u)" = 0 ] && as_root=--allow-run-as-root
  # shellcheck disable=SC2086
  check openmpi mpirun.openmpi $as_root --oversubscribe -n 3 "$program" $arguments
fi
if command -v mpiexec.mpich >/dev/null; then
  # Hydra does not tell ranks of each other's hosts, so a file does.
  # shellcheck disable=SC2086
  check mpich mpiexec.mpich -env COLLX_RENDEZVOUS "file:$scratch/rank0" -n 3 "$program" $arguments
fi
[ $started -gt 0 ] || echo "SKIPPED: neither mpirun.openmpi nor mpiexec.mpich is installed"
exit $failures
