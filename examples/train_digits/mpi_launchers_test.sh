#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mpi_launchers_test.sh LAUNCHER PROGRAM TRANSPORT...: the launcher of Open MPI (openmpi) or MPICH (mpich) starts
# train_digits over each of the transports (shm, tcp), and it ends with the model of one rank. Neither library is
# linked: only what they leave in the environment is used.
set -u
launcher=$1 program=$2
shift 2
case $launcher in
  openmpi) command=mpirun.openmpi ;;
  mpich) command=mpiexec.mpich ;;
  *)
    echo "FAILED: no launcher is called $launcher"
    exit 2
    ;;
esac
command -v $command >/dev/null || {
  echo "SKIPPED: no $command"
  exit 0
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# check NAME WORDS command...: two jobs at the same time, which must not meet each other.
check() {
  name=$1 words=$2
  shift 2
  "$@" >"$scratch/$name.beside" 2>&1 &
  beside=$!
  "$@" >"$scratch/$name" 2>&1
  ended=$?
  wait $beside
  beside=$?
  for output in "$scratch/$name" "$scratch/$name.beside"; do
    grep -qF "3 processes over $words" "$output" || ended=1
    grep -qF "same model as 1 rank: yes (bit for bit)" "$output" || ended=1
  done
  if [ $ended = 0 ] && [ $beside = 0 ]; then
    echo "$name: fine"
  else
    echo "$name: FAILED"
    cat "$scratch/$name" "$scratch/$name.beside"
    failures=$((failures + 1))
  fi
}

unset COLLX_RENDEZVOUS
arguments="--reproducible --epochs 3 --require-accuracy 0"
for transport in "$@"; do
  words="shared memory"
  [ "$transport" = tcp ] && words=TCP
  if [ "$launcher" = openmpi ]; then
    as_root=
    [ "$(id -u)" = 0 ] && as_root=--allow-run-as-root
    # shellcheck disable=SC2086
    check openmpi_$transport "$words" $command $as_root --oversubscribe -n 3 "$program" \
      --transport $transport $arguments
  else
    # shellcheck disable=SC2086
    check mpich_$transport "$words" $command -n 3 "$program" --transport $transport $arguments
  fi
done
exit $failures
