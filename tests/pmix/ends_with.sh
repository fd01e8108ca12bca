#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ends_with.sh CODE PATTERN COMMAND...   Fine if the command ends with that exit code and has a line that matches.
set -u
code=$1 pattern=$2
shift 2
said=$("$@" 2>&1)
got=$?
printf '%s\n' "$said"
[ $got = "$code" ] || { echo "it ended with $got, and not with $code"; exit 1; }
grep -qE -- "$pattern" <<<"$said" || { echo "no line matches: $pattern"; exit 1; }
