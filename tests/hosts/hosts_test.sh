#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hosts_test.sh SCENARIO TRANSPORT HOST_RANK OVERHEAR [TRAIN_DIGITS]: ranks on four hosts, which are network namespaces
# joined by virtual cables and a bridge in a fifth. All of it is taken down again, whatever happens.
set -u
scenario=$1 transport=$2 host_rank=$3 overhear=$4 train_digits=${5:-}
scratch=$(mktemp -d)
name=collx$$
hosts=4

cleanup() {
  for pid in $(jobs -p); do kill -KILL "$pid" 2>/dev/null; done
  for h in switch $(seq 0 $((hosts - 1))); do
    # What runs in a namespace is ours alone: nobody else knows its name.
    for pid in $(ip netns pids "$name-$h" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null; done
    ip netns del "$name-$h" 2>/dev/null
  done
  rm -rf "$scratch"
}
trap cleanup EXIT

skip() {
  echo "SKIPPED: $1"
  exit 0
}
fail() {
  echo "FAILED: $1"
  tail -n 5 "$scratch"/rank_* 2>/dev/null
  exit 1
}

# try REASON PATTERN command...: where it fails with words that match, this system cannot, or may not: the test is
# skipped. Any other failure is one.
try() {
  local reason=$1 pattern=$2
  shift 2
  LC_ALL=C "$@" 2>"$scratch/refusal" && return
  grep -qE "$pattern" "$scratch/refusal" && skip "$reason: $(tail -n 1 "$scratch/refusal")"
  fail "$*: $(cat "$scratch/refusal")"
}

# cable HOST NAME SWITCH ADDRESS: a cable from a host to a bridge.
cable() {
  try "no virtual cables in this kernel" "Unknown device type|not supported|not permitted" \
    ip -n "$name-$1" link add "$2" type veth peer name "$3-$1" netns "$name-switch"
  ip -n "$name-switch" link set "$3-$1" master "$3" up && ip -n "$name-$1" addr add "$4" dev "$2" &&
    ip -n "$name-$1" link set "$2" up || fail "host $1 is not connected to $3"
}

bridge() {
  try "no bridges in this kernel" "Unknown device type|not supported|not permitted" \
    ip -n "$name-switch" link add "$1" type bridge
  ip -n "$name-switch" link set "$1" up || fail "the bridge $1 stays down"
}

make_hosts() {
  command -v ip >/dev/null || skip "no ip (Debian: iproute2)"
  # Where mounting is not permitted, root itself may not.
  try "no privilege to make network namespaces" "Operation not permitted|Permission denied" \
    ip netns add "$name-switch"
  # To enter one, ip makes the mounts below / its own.
  try "the root directory is no mount point, as in a chroot" "make-rslave" ip netns exec "$name-switch" true
  bridge port
  local h
  for h in $(seq 0 $((hosts - 1))); do
    ip netns add "$name-$h" || fail "no namespace for host $h"
    cable "$h" v0 port "10.77.0.$((h + 1))/24"
    ip -n "$name-$h" link set lo up || fail "host $h has no loopback interface"
  done
}

# start RANKS PER_HOST command...: each rank's output goes to a file of its own. Ranks are told who they are as torchrun
# does it, or as the launcher that COLLX_LAUNCHER names.
start() {
  local ranks=$1 per_host=$2 r who
  shift 2
  rm -f "$scratch"/rank_*
  for r in $(seq 0 $((ranks - 1))); do
    who=(RANK="$r" LOCAL_RANK="$((r % per_host))")
    [ "${COLLX_LAUNCHER:-}" = Kubernetes ] && who=(JOB_COMPLETION_INDEX="$r")
    ip netns exec "$name-$((r / per_host))" env "${who[@]}" WORLD_SIZE="$ranks" \
      MASTER_ADDR="$master" MASTER_PORT=29400 "$@" >"$scratch/rank_$r" 2>&1 &
  done
}

wait_for_all() {
  local failures=0 pid
  for pid in $(jobs -p); do wait "$pid" || failures=$((failures + 1)); done
  return $failures
}

# Until every rank has said that it runs.
wait_until_running() {
  local r tries
  for r in $(seq 0 7); do
    for tries in $(seq 1 6000); do
      grep -q "^running" "$scratch/rank_$r" && break
      read -r -t 0.01 <> <(:)
    done
    grep -q "^running" "$scratch/rank_$r" || fail "rank $r does not run"
  done
}

process_of() { sed -n 's/^running, process //p' "$scratch/rank_$1"; }

# The ranks given must all have failed, and named one of the culprits.
require_named() {
  local culprits=$1 r
  shift
  for r in "$@"; do
    grep -qE "^failed: peer ($culprits)," "$scratch/rank_$r" || fail "rank $r does not name $culprits"
  done
}

# Since SECONDS was set to 0, no more than so many have passed.
require_within() { [ "$SECONDS" -le "$1" ] || fail "the survivors took $SECONDS s; $1 are enough"; }

run_collectives() {
  start 8 2 "$host_rank" "$transport" collectives
  wait_for_all || fail "a rank failed"
  grep -q "8 ranks, 2 on each host: all right" "$scratch/rank_0" || fail "rank 0 says something else"
}

# Whether words can be read at the cable of the first host, and how often, until end_listening: in `overheard`.
listen_for() {
  ip netns exec "$name-switch" "$overhear" port-0 "$1" >"$scratch/overheard" 2>&1 &
  ear=$!
  local _
  for _ in $(seq 1 6000); do
    grep -q listening "$scratch/overheard" && break
    read -r -t 0.01 <> <(:)
  done
}

end_listening() {
  kill -TERM "$ear"
  wait "$ear" || fail "nobody listened: $(cat "$scratch/overheard")"
}

# Runs 8 ranks that send each other words.
send_words() {
  local words="what only these ranks may read; " pid
  listen_for "$words"
  start 8 2 "$host_rank" "$transport" words "$words"
  for pid in $(jobs -p); do
    [ "$pid" = "$ear" ] || wait "$pid" || fail "a rank failed"
  done
  end_listening
  grep -q "words: all right" "$scratch/rank_0" || fail "rank 0 says something else"
}

# wait_for_word WORD RANK   Whether a line of what the rank prints begins with that word within a minute.
wait_for_word() {
  for _ in $(seq 1 6000); do
    grep -q "^$1" "$scratch/rank_$2" && return
    read -r -t 0.01 <> <(:)
  done
  return 1
}

# Bytes that a host has sent by an interface.
sent_by() { ip netns exec "$name-$1" cat "/sys/class/net/$2/statistics/tx_bytes"; }

# Whether a file holds the secret. It is no argument of grep, where others could read it.
tells_secret() {
  grep -qaF -f "$scratch/secret" "$1"
  local how=$?
  [ "$how" -le 1 ] || fail "$1 cannot be read"
  return "$how"
}

# Fails if the secret is in what ranks have printed.
require_secret_unprinted() {
  local file
  for file in "$scratch"/rank_*; do
    tells_secret "$file" && fail "$file holds the secret"
  done
}

export COLLX_TIMEOUT_US=60000000
# For deadlines that are to pass. All must have come before, and who gives no answer for an eighth of it, held up by the
# machine, would be blamed as well.
brief_us=12000000
# Then they are over, with as much again for a busy machine, and for the second in which who leaves tells others why.
brief_s=24
(umask 077 && head -c 32 /dev/urandom | od -A n -t x1 | tr -d ' \n' >"$scratch/secret")
export COLLX_SECRET_FILE=$scratch/secret
master=10.77.0.1
make_hosts

case $scenario in
  collectives)
    run_collectives
    if [ "$transport" = tcp ]; then
      # Once more with large messages in many slices, each with its checksum, over three connections.
      export COLLX_TCP_FLOWS=3 COLLX_TCP_CHECK=1 COLLX_STAGING_BYTES=1048576 COLLX_TCP_SLICE_BYTES=16384
      run_collectives
    fi
    ;;
  no_secret)
    unset COLLX_SECRET_FILE
    start 1 1 env WORLD_SIZE=2 "$host_rank" "$transport" collectives
    wait_for_all && fail "a job without a secret ran between hosts"
    grep -q "COLLX_SECRET" "$scratch/rank_0" || fail "the message does not say what to set"
    ;;
  killed)
    start 8 2 "$host_rank" "$transport" until_it_fails
    wait_until_running
    SECONDS=0
    kill -KILL "$(process_of 5)"
    wait_for_all
    require_within 12 # the system tells: the deadline is 60, and after a quarter of it UCX would ask
    require_named 5 0 1 2 3 4 6 7
    ;;
  stopped)
    export COLLX_TIMEOUT_US=$brief_us
    start 8 2 "$host_rank" "$transport" until_it_fails
    wait_until_running
    victim=$(process_of 5)
    SECONDS=0
    kill -STOP "$victim"
    for r in 0 1 2 3 4 6 7; do wait_for_word failed "$r"; done
    require_within "$brief_s"
    kill -KILL "$victim"
    wait_for_all
    require_named 5 0 1 2 3 4 6 7
    ;;
  link_down)
    export COLLX_TIMEOUT_US=$brief_us
    start 8 2 "$host_rank" "$transport" until_it_fails
    wait_until_running
    SECONDS=0
    ip -n "$name-3" link set v0 down
    wait_for_all
    require_within "$brief_s"
    # Ranks 6 and 7 are cut off: they name somebody on the other side.
    require_named "6|7" 0 1 2 3 4 5
    require_named "[0-5]" 6 7
    ;;
  encrypted)
    send_words
    grep -qE "the words [1-9][0-9]+ times" "$scratch/overheard" || fail "nothing was heard: $(cat "$scratch/overheard")"
    export COLLX_TLS=1
    send_words
    grep -qE "overheard [1-9][0-9]{5,} bytes, and the words 0 times" "$scratch/overheard" ||
      fail "not encrypted: $(cat "$scratch/overheard")"
    run_collectives
    ;;
  interface)
    # Two networks: ranks meet in the one, and are told to send by the other.
    bridge fast
    for h in $(seq 0 $((hosts - 1))); do cable "$h" v1 fast "10.78.0.$((h + 1))/24"; done
    export COLLX_INTERFACE=v1
    run_collectives
    for h in $(seq 0 $((hosts - 1))); do
      slow=$(sent_by "$h" v0) fast=$(sent_by "$h" v1)
      [ "$fast" -gt 1000000 ] && [ "$fast" -gt $((100 * slow)) ] || fail "host $h sent $slow bytes by v0, $fast by v1"
    done
    ;;
  ipv6)
    for h in $(seq 0 $((hosts - 1))); do
      try "no IPv6 on this machine" "not supported|Permission denied" \
        ip -n "$name-$h" -6 addr add "fd77::$((h + 1))/64" dev v0 nodad
      ip -n "$name-$h" -4 addr flush dev v0 || fail "host $h keeps its IPv4 address"
    done
    master=fd77::1
    run_collectives
    ;;
  file)
    # A job on a host that is no more has left its file there.
    printf 'collx 1 10.77.0.99:29400 0123456789abcdef\n' >"$scratch/meet"
    export COLLX_RENDEZVOUS=file:$scratch/meet
    master=10.77.0.98 # nobody's
    run_collectives
    [ -e "$scratch/meet" ] && fail "the file is still there"
    ;;
  secret)
    listen_for "$(cat "$scratch/secret")"
    start 8 2 "$host_rank" "$transport" until_it_fails
    wait_until_running
    for r in $(seq 0 7); do
      for what in cmdline environ; do
        tells_secret "/proc/$(process_of "$r")/$what" && fail "$what of rank $r holds the secret"
      done
    done
    kill -KILL "$(process_of 5)"
    for r in 0 1 2 3 4 6 7; do
      wait_for_word failed "$r" || fail "rank $r goes on without rank 5"
    done
    end_listening
    grep -qE "overheard [1-9][0-9]+ bytes, and the words 0 times" "$scratch/overheard" ||
      fail "the secret was sent: $(cat "$scratch/overheard")"
    require_secret_unprinted
    wait_for_all
    # As a variable it can be read where every variable can, which shows that it is found where it is.
    export COLLX_SECRET
    COLLX_SECRET=$(cat "$scratch/secret")
    start 8 2 env -u COLLX_SECRET_FILE "$host_rank" "$transport" until_it_fails
    wait_until_running
    tells_secret "/proc/$(process_of 0)/environ" || fail "the variable is not found"
    for r in $(seq 0 7); do
      tells_secret "/proc/$(process_of "$r")/cmdline" && fail "the arguments of rank $r hold the secret"
    done
    kill -KILL "$(process_of 5)"
    wait_for_all
    require_secret_unprinted
    # And one of another job is told so, without either.
    start 2 1 env -u COLLX_SECRET_FILE \
      sh -c '[ "$RANK" = 0 ] || export COLLX_SECRET="not that of the other rank"; exec "$@"' \
      sh "$host_rank" "$transport" collectives
    wait_for_word error 1
    grep -q "it has another secret" "$scratch/rank_1" || fail "another secret is not refused"
    require_secret_unprinted
    grep -q "not that of the other rank" "$scratch"/rank_* && fail "the other secret was printed"
    ;;
  pmix)
    # Open MPI's launcher, on the first host, takes the others for this one: a wrapper puts its ranks there, and its own
    # variables are hidden.
    command -v mpirun.openmpi >/dev/null || skip "no mpirun.openmpi"
    printf '#!/bin/bash\nexec ip netns exec "%s-$((OMPI_COMM_WORLD_RANK / 2))" env -u %s -u %s "$@"\n' "$name" \
      OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE >"$scratch/on_its_host"
    chmod +x "$scratch/on_its_host"
    export COLLX_INTERFACE=v0 PMIX_MCA_ptl_base_remote_connections=1 PMIX_MCA_ptl_tcp_remote_connections=1
    export PMIX_MCA_ptl_base_if_include=v0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    ip netns exec "$name-0" mpirun.openmpi --mca oob_tcp_if_include v0 --oversubscribe -n 8 "$scratch/on_its_host" \
      "$host_rank" "$transport" >"$scratch/rank_0" 2>&1 || fail "a rank failed"
    grep -q "8 ranks: all right" "$scratch/rank_0" || fail "rank 0 says something else"
    ;;
  mpiexec)
    # MPICH's launcher, which starts what stands for a remote shell, and tells ranks of other hosts by PMI where rank 0 is.
    # shellcheck disable=SC2016  # for the scripts
    command -v mpiexec.mpich >/dev/null || skip "no mpiexec.mpich"
    printf '#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nexec ip netns exec "%s-$((${1##*.} - 1))" sh -c "${*:2}"\n' \
      "$name" >"$scratch/remote_shell"
    chmod +x "$scratch/remote_shell"
    mpiexec=(ip netns exec "$name-0" mpiexec.mpich -launcher ssh -launcher-exec "$scratch/remote_shell"
             -localhost 10.77.0.1 -ppn 2 -hosts)
    unset MASTER_ADDR MASTER_PORT COLLX_RENDEZVOUS
    all=10.77.0.1,10.77.0.2,10.77.0.3,10.77.0.4
    "${mpiexec[@]}" $all -n 8 "$host_rank" "$transport" collectives >"$scratch/rank_0" 2>&1 || fail "a rank failed"
    grep -q "8 ranks, 2 on each host: all right" "$scratch/rank_0" || fail "rank 0 says something else"
    if [ -x "$train_digits" ]; then
      "${mpiexec[@]}" 10.77.0.1,10.77.0.2 -n 4 "$train_digits" --transport tcp --reproducible --epochs 3 \
        --require-accuracy 0 >"$scratch/rank_0" 2>&1 || fail "a rank of the digits failed"
      grep -q "same model as 1 rank: yes (bit for bit)" "$scratch/rank_0" || fail "another model than on one host"
    fi
    # The last rank does not come: the launcher knows only of those of other hosts than its own.
    printf '#!/bin/sh\n[ "$PMI_RANK" = 7 ] && exit\nexec "$@"\n' >"$scratch/last_is_absent"
    chmod +x "$scratch/last_is_absent"
    COLLX_TIMEOUT_US=$brief_us "${mpiexec[@]}" $all -n 8 "$scratch/last_is_absent" "$host_rank" "$transport" collectives \
      >"$scratch/rank_0" 2>&1 && fail "a rank is missing, and nobody has seen it"
    grep -q "meeting by PMI, rank 0 of 8: not all ranks have come within [0-9.]* s; the launcher knows nothing of 2, rank 6" \
      "$scratch/rank_0" || fail "rank 0 does not say who is missing"
    ;;
  digits)
    [ -x "$train_digits" ] || skip "train_digits is not built"
    export COLLX_LAUNCHER=Kubernetes
    start 4 2 "$train_digits" --transport tcp --reproducible --epochs 3 --require-accuracy 0
    wait_for_all || fail "a rank failed"
    grep -q "same model as 1 rank: yes (bit for bit)" "$scratch/rank_0" || fail "another model than on one host"
    ;;
esac
echo "$scenario over $transport: fine"
