#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/memory_scopes.sh finds what it is there for: PTX in which all is right, with one thing changed at a
# time.
#   check.sh MEMORY_SCOPES
set -uo pipefail

script=$1
right=$(dirname "${BASH_SOURCE[0]}")/lanes.ptx
changed=$(mktemp)
trap 'rm -f "$changed"' EXIT
wrong=0

# ends_with STATUS WORDS   the script, on the changed PTX
ends_with() {
  local said code
  said=$("$script" "$changed" 2>&1)
  code=$?
  [ "$code" = "$1" ] && [[ $said == *"$2"* ]] && return
  printf 'ended with %s, not %s, or did not say "%s":\n%s\n' "$code" "$1" "$2" "$said"
  wrong=1
  return 1
}

cp "$right" "$changed"
ends_with 0 '2 kernels, 2 of them talk with others, 1 by way of a switch; 22 operations of the scope of'
ends_with 0 'allowed 2 times: ^fence[.]proxy[.]alias$'

# refuses WORDS SED   what sed changes
refuses() {
  sed "$2" "$right" >"$changed"
  if cmp -s "$right" "$changed"; then
    printf "'%s' changes nothing\n" "$2"
    wrong=1
  else
    ends_with 1 "$1" || printf "after '%s'\n" "$2"
  fi
}

# Whatever is of the scope of the system, one by one; fences come below.
while read -r line; do
  for scope in gpu cta; do
    refuses 'has a narrower scope than the system' "${line}s/\.sys/.$scope/"
  done
done < <(grep -n '\.sys' "$right" | grep -v 'fence\.acq_rel' | cut -d: -f1)
refuses 'fence.acq_rel.gpu (2 times) has a narrower scope' \
        's/@!%p2 fence.acq_rel.sys/@!%p2 fence.acq_rel.gpu/'
refuses 'fence.acq_rel.cta (1 times) has a narrower scope' 's/fence.acq_rel.gpu/fence.acq_rel.cta/'
refuses 'membar.gl (1 times) has a narrower scope' 's/fence.acq_rel.gpu/membar.gl/'
refuses 'names no scope' 's/atom.exch.relaxed.sys/atom.global.exch/'
refuses 'v4.f16x2 (1 times) has a narrower scope' 's/ld_reduce.relaxed.sys/ld_reduce/'

# What is no order, or can be seen in part.
refuses 'is volatile' 's/ld.relaxed.sys.b32/ld.volatile.b32/'
refuses 'does not see what others write' 's/ld.global.v4/ld.global.nc.v4/'
refuses 'several accesses' 's/st.relaxed.sys.global.b128/st.relaxed.sys.global.v2.b64/'
refuses 'not stored at once' 's/st.relaxed.sys.global.b128/st.relaxed.sys.global.b64/'
refuses 'not loaded at once' 's/ld.relaxed.sys.global.b128/ld.relaxed.sys.global.b64/'

# What is missing.
refuses 'letters are not acquired' 's/ld.acquire.sys.b64 %rd3,/ld.relaxed.sys.b64 %rd3,/'
for register in 31 6 8; do
  refuses 'credits are not acquired in all' \
          "/9run_lanes/,/^}/s/ld.acquire.sys.b64 %rd$register,/ld.relaxed.sys.b64 %rd$register,/"
done
refuses 'no fence for who is on another GPU' 's/^fence.acq_rel.sys;//'
refuses 'no fence for who is on another GPU' 's/@!%p2 fence.acq_rel.sys;//; s/@%p2 fence.acq_rel.gpu;//'
refuses 'published in front of the fence' \
        '/@%p2 fence/d; /@!%p2 fence/d; /^\tst.relaxed.sys.b64/a fence.acq_rel.sys;'
refuses 'is not released' 's/st.release.sys.b32/st.relaxed.sys.b32/'
refuses 'no proxy fences' 's/^fence.proxy.alias;//'

# What nobody has thought about.
refuses 'none of the operations that are known' \
        's/ld.global.v4.u32.*/cp.async.cg.shared.global [room], [%rd1], 16;/'
refuses 'none of the operations that are known' 's/bar.sync.*/griddepcontrol.launch_dependents;/'
refuses 'none of the operations that are known' 's/ld.volatile.shared/ld.volatile.shared::cluster/'
refuses 'none of the operations that are known' '/9run_lanes/,/^}/s/bar.sync.*/fence.proxy.alias;/'
refuses 'of what is known only when it runs' 's/_ZN.*15send_packets_ofEv, $/%rd7,/'

# The kernels of tests are their own affair; but others have to be there.
sed '/9run_lanes\|16reduce_in_switch/s/_ZN5collx/_ZN5tests/' "$right" >"$changed"
ends_with 1 'no kernel that talks with others was found'
exit $wrong
