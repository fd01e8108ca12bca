#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ends_with.sh [--launcher-may-fail] CODE PATTERN COMMAND...   Fine if the command ends with that exit code and has
# a line that matches.
#
# --launcher-may-fail: the command is a launcher, which has to say that a rank ended with that code; how it ends itself
# is not looked at. Open MPI 4.1.4's mpirun waits for ever or crashes in PMIx_server_finalize() now and then if ranks end
# while others are expected (on a busy machine in 10 of some 60 runs), after it has said all.
set -u
may_fail=
if [ "$1" = --launcher-may-fail ]; then
  may_fail=yes
  shift
fi
code=$1 pattern=$2
shift 2
[ -z "$may_fail" ] || set -- timeout -k 5 40 "$@"
said=$("$@" 2>&1)
got=$?
printf '%s\n' "$said"
if [ -n "$may_fail" ]; then
  # It may crash between these two lines, too.
  stated='a non-zero exit code'
  grep -q 'Exit code:' <<<"$said" && stated="Exit code: +$code\$"
  grep -qE -- "$stated" <<<"$said" || { echo "no rank ended with $code, says the launcher"; exit 1; }
else
  [ $got = "$code" ] || { echo "it ended with $got, and not with $code"; exit 1; }
fi
grep -qE -- "$pattern" <<<"$said" || { echo "no line matches: $pattern"; exit 1; }
