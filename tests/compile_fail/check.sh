#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh COMPILER INCLUDE_DIR SOURCE [PRECOMPILED]
#
# PRECOMPILED: headers as clang has compiled them before, to save time.
#
# Passes if SOURCE does not compile and the first error says what its comments promise:
#   // first error: words that must stand in the first line with "error: "
#   // shows: words that must stand somewhere in the output (any number of these lines)
# and if the same source compiles with -DFIXED, so that nothing but the one mistake is refused. Where the
# mistake is a flag of the compiler, which -DFIXED goes without:
#   // mistake: -fno-exceptions
set -u
compiler=$1 include=$2 source=$3 precompiled=${4:-}

# compile FLAG...   a folder may have a space in its name
compile() {
  "$compiler" -std=c++20 -fsyntax-only "-I$include" ${precompiled:+-include-pch "$precompiled"} "$@" "$source" 2>&1
}

mistake=$(sed -n 's|^// mistake: ||p' "$source")
[ -z "$mistake" ] || precompiled=  # made without that flag
output=$(compile ${mistake:+"$mistake"})
if [ $? -eq 0 ]; then
  echo "$source compiles, but should not"
  exit 1
fi

first=$(printf '%s\n' "$output" | grep -m 1 'error: ')
expected=$(sed -n 's|^// first error: ||p' "$source")
if [ -z "$expected" ]; then
  echo "$source has no line '// first error: ...'"
  exit 1
fi
case $first in
  *"$expected"*) ;;
  *)
    echo "the first error is:   $first"
    echo "it should contain:    $expected"
    exit 1
    ;;
esac

sed -n 's|^// shows: ||p' "$source" | while IFS= read -r words; do
  printf '%s\n' "$output" | grep -qF -- "$words" || { echo "the output does not show: $words"; exit 1; }
done || exit 1

if ! fixed=$(compile -DFIXED); then
  echo "$source should compile with -DFIXED, but:"
  printf '%s\n' "$fixed" | head -n 20
  exit 1
fi
