#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# enter_host.sh [OPTIONS] ADDRESS COMMAND...   What a launcher of MPI starts in place of ssh: the command on one of the
# hosts that bench/compare makes, which has a network, a name and processes of its own (bench/comparing/hosts.py;
# COLLX_BENCH_HOSTS, with %d for the host's number). The options are those that the launcher would give ssh.
while [ "${1#-}" != "$1" ]; do
  case $1 in -[lpoiF]) shift ;; esac  # and its value
  shift
done
number=$((${1##*.} - 1))
shift
# shellcheck disable=SC2059  # the format is what the variable is
namespace=$(basename "$(printf "$COLLX_BENCH_HOSTS" "$number")")
exec ip netns exec "$namespace" unshare --uts --ipc --pid --fork --mount-proc \
  sh -c "hostname host$number; $*"
