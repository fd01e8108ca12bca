#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# slurm_test.sh TRAIN_DIGITS PMIX_RANK (either may be empty): srun starts four ranks over TCP and over shared memory,
# under a Slurm of this test's own: a munged, a slurmctld and a slurmd with ports, keys and folders that nobody else
# uses. All of it is stopped again by process number, whatever happens.
set -u -o pipefail
train_digits=$1 pmix_rank=$2
host=$(uname -n | cut -d. -f1)
PATH=$PATH:/usr/sbin:/sbin
ranks=4
daemons=()

cleanup() {
  # In the opposite order of their starts; slurmd ends its steps.
  local i
  for ((i = ${#daemons[@]} - 1; i >= 0; --i)); do
    kill "${daemons[i]}" 2>/dev/null
    for _ in $(seq 50); do
      kill -0 "${daemons[i]}" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "${daemons[i]}" 2>/dev/null
  done
  rm -rf "$scratch"
}
skip() {
  echo "SKIPPED: $1"
  exit 0
}
# fail REASON [NAME]: what check NAME printed comes last but for the reason, where those look who see but the end.
fail() {
  local log
  for log in "$scratch"/*.log "$scratch"/{munged,slurmctld,slurmd}.out ${2:+"$scratch/$2.out"}; do
    echo "== ${log##*/}"
    tail -n 20 "$log"
  done 2>/dev/null
  echo "FAILED: $1"
  exit 1
}
# until_true SECONDS command...
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}
run_daemon() {
  local name=$1
  shift
  "$@" >"$scratch/$name.out" 2>&1 &
  daemons+=($!)
}

for program in munged slurmctld slurmd srun scontrol; do
  command -v $program >/dev/null || skip "no $program (Debian: munge slurmctld slurmd slurm-client)"
done
[ -n "$train_digits" ] || skip "the examples are not built"
[ "$(id -u)" = 0 ] || skip "slurmd starts processes for others, so it wants to be root"
ls /usr/lib/*/slurm*/proctrack_linuxproc.so >/dev/null 2>&1 || skip "this Slurm has no proctrack/linuxproc"
scratch=$(mktemp -d)
trap cleanup EXIT

# Ports that nothing listens at: below those that the system hands out, above those at which ranks of other tests meet
# (10000 to 29999). Those of this test meet above them.
free_port() {
  local port
  for _ in $(seq 100); do
    port=$((30000 + $1 + RANDOM % 500))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  echo $port
}
export COLLX_PORTS=31000:32767

mkdir -m 755 "$scratch/munge" "$scratch/state" "$scratch/spool"
chmod 711 "$scratch"
(umask 077 && head -c 64 /dev/urandom >"$scratch/munge/key")
cat >"$scratch/slurm.conf" <<CONF
ClusterName=collx$$
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port 0)
SlurmdPort=$(free_port 500)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$scratch/munge/socket
CredType=cred/munge
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
SlurmctldLogFile=$scratch/slurmctld.log
SlurmdLogFile=$scratch/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/linear
MessageTimeout=60
TCPTimeout=30
SlurmdParameters=config_overrides
ReturnToService=2
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
NodeName=localhost NodeHostname=$host NodeAddr=127.0.0.1 CPUs=$ranks State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES MaxTime=10 State=UP
CONF
export SLURM_CONF=$scratch/slurm.conf

# Who is started inside of another job of Slurm's is nobody's step here.
while IFS= read -r variable; do unset "$variable"; done < <(compgen -e | grep '^SLURM_' | grep -v '^SLURM_CONF$')

run_daemon munged munged --foreground --force --socket="$scratch/munge/socket" --key-file="$scratch/munge/key" \
  --pid-file="$scratch/munge/pid" --log-file="$scratch/munge/log" --seed-file="$scratch/munge/seed" --num-threads=2
until_true 20 test -S "$scratch/munge/socket" || { cat "$scratch"/munged.out; skip "munged does not start here"; }
run_daemon slurmctld slurmctld -D -c
run_daemon slurmd slurmd -D -N localhost
is_idle() { scontrol -o show node localhost 2>&1 | grep -q 'State=IDLE '; }
if ! until_true 30 is_idle; then
  scontrol show node localhost
  tail -n 5 "$scratch"/*.out "$scratch"/*.log
  skip "slurmctld or slurmd does not start here"
fi

# A step that Slurm has not started says nothing of the ranks.
require_launched() {
  local why
  why=$(grep -m 1 -E '^srun: error: .*(launch failed|[Uu]nable to (allocate|confirm|create)|[Ss]ocket timed out|Zero Bytes)' \
    "$scratch/$1.out") || return 0
  cat "$scratch"/{slurmctld,slurmd}.log "$scratch/$1.out"
  skip "$1: Slurm did not start the step ($why)"
}
# check NAME PATTERN command...
check() {
  local name=$1 pattern=$2 ended=0
  shift 2
  timeout -k 5 120 "$@" >"$scratch/$name.out" 2>&1 || ended=$?
  require_launched "$name"
  [ $ended = 0 ] || fail "$name: it ended with $ended" "$name"
  grep -qE -- "$pattern" "$scratch/$name.out" || fail "$name: no line matches: $pattern" "$name"
  echo "$name: fine"
}
check train_digits "same model as 1 rank: yes \(bit for bit\)" \
  srun -n $ranks "$train_digits" --transport tcp --reproducible --epochs 3 --require-accuracy 0
grep -qF "$ranks processes over TCP" "$scratch/train_digits.out" ||
  fail "not $ranks processes over TCP" train_digits
check shared_memory "^.*$ranks processes over shared memory" \
  srun -n $ranks "$train_digits" --reproducible --epochs 3 --require-accuracy 0
if grep -qw pmi2 <<<"$(srun --mpi=list 2>&1)"; then  # whose tasks look like ranks of MPICH's launcher
  check pmi2 "^$ranks processes over TCP" \
    srun --mpi=pmi2 -n $ranks "$train_digits" --transport tcp --epochs 1 --require-accuracy 0
else
  echo "pmi2: left out (no plugin of Slurm for it)"
fi
if [ -n "$pmix_rank" ] && grep -qw pmix <<<"$(srun --mpi=list 2>&1)"; then
  check pmix "^$ranks ranks: all right$" srun --mpi=pmix -n $ranks "$pmix_rank" tcp
else
  echo "pmix: left out (no plugin of Slurm for it, or no libpmix)"
fi
# A rank that ends before it has come: the step fails, and the others name it. The first one: of several that have not
# come yet, it is that which is named.
COLLX_TIMEOUT_US=5000000 timeout -k 5 120 srun -n $ranks bash -c \
  '[ "$SLURM_PROCID" != 1 ] || exit 7; exec "$@"' rank "$train_digits" --transport tcp --epochs 1 \
  >"$scratch/missing.out" 2>&1 && fail "a step with a rank that ended was fine" missing
require_launched missing
grep -qE "rank 1 (never came|was lost)" "$scratch/missing.out" ||
  fail "missing: nobody names rank 1" missing
echo "all right"
