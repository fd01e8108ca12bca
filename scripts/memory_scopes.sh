#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reads what the kernels of collx, and the functions they call, do to memory that others see, and fails if
# anything of it reaches less than the whole system (.sys): who is on the other side may be another GPU, or
# the host. No run shows such a mistake on one GPU, nor on the emulated one. Fails as well if a kernel that
# talks with others lacks an acquire, a fence or a release of its protocol, or does what nobody has thought
# about.
#   scripts/memory_scopes.sh [BUILD_DIRECTORY | FILE...]      default: build/cuda, which has to be built
# FILE: an object file of nvcc with PTX that is not compressed (--compress-mode=none), or PTX (nvcc -ptx).
# Kernels of the tests themselves are not looked at.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/help.sh"

files=("$@")
whole_build=
if [ $# -le 1 ] && { [ $# = 0 ] || [ ! -f "$1" ]; }; then
  build=${1:-$(dirname "${BASH_SOURCE[0]}")/../build/cuda}
  if [ ! -d "$build" ]; then
    echo "error: there is no folder $build; build the preset cuda first, or name its folder" >&2
    exit 2
  fi
  mapfile -t files < <(find "$build" -path '*_object.dir/*' -name '*.cu.o' | sort)
  whole_build=1
fi
for file in ${files[@]+"${files[@]}"}; do
  [ -f "$file" ] || { echo "error: there is no file $file" >&2; exit 2; }
done

# The lines of PTX, among what else an object file holds.
for file in ${files[@]+"${files[@]}"}; do
  echo "//file ${file##*/}"
  LC_ALL=C tr -cs '\11\12\40-\176' '\n' <"$file"
  echo
done | LC_ALL=C awk -v whole_build="$whole_build" '
  # What is allowed though it is narrower, or no access at all: in functions whose (mangled) names match
  # `where`, operations that match `what`, if there are at least as many that match `beside` in the same
  # function. What is in shared or local memory is a block, or a thread, of its own, and need not be here.
  function allow_all() {
    allow("9run_lanes|16reduce_in_switch", "^fence[.](acq_rel|release)[.]gpu$", system_fence,
          "a publication has both fences: this one runs if all ranks are of one process and one GPU")
    allow("16reduce_in_switch", "^fence[.]proxy[.]alias$", "",
          "replicas have another address than that of the switch")
  }
  function allow(where, what, beside, why) {
    ++rules
    rule_where[rules] = where; rule_what[rules] = what; rule_beside[rules] = beside; rule_why[rules] = why
  }
  function rule_for(f, op,   i) {
    for (i = 1; i <= rules; ++i)
      if (f ~ rule_where[i] && op ~ rule_what[i] &&
          (rule_beside[i] == "" || has(f, rule_what[i]) <= has(f, rule_beside[i]))) return i
    return 0
  }

  # Why an operation may not stand anywhere; "" if it may.
  function objection(op,   p) {
    p = "." op "."
    if (op ~ /^(ld|ldu|st|atom|red)\./) {
      if (p ~ /\.(param|param::entry|param::func|local|const|shared|shared::cta)\./) return ""
      if (op ~ /^(st|red)\.(async|bulk)/ || p ~ /\.shared::cluster\./) return unknown
      if (p ~ /\.nc\./ || op ~ /^ldu/) return "reads by way of a cache that does not see what others write"
      if (p ~ /\.volatile\./) return "is volatile, which orders nothing"
      # Ordinary ones: fences and flags order them.
      if (op ~ /^(ld|st)/ && p !~ /\.(relaxed|acquire|release|mmio)\./) return ""
      if (op ~ /^(ld|st)/ && p ~ /\.v[248]\./) return "is several accesses, of which others may see some"
      if (op ~ /^(atom|red)/ && p !~ /\.(cta|cluster|gpu|sys)\./) return "names no scope, which is .gpu"
      return p ~ /\.sys\./ ? "" : narrow
    }
    if (op ~ /^multimem\./) return p ~ /\.(relaxed|acquire|release)\.sys\./ ? "" : narrow
    if (op ~ /^membar\./ || op ~ /^fence\.(sc|acq_rel|acquire|release)\./)
      return p ~ /\.sys\./ ? "" : narrow
    return unknown
  }

  # A whole instruction of the function `name`.
  function statement(text,   op, target) {
    sub(/^[ \t{}]+/, "", text)
    while (match(text, /^[$%A-Za-z0-9_]+:[ \t]+/)) text = substr(text, RLENGTH + 1)
    sub(/^[ \t{}]+/, "", text)
    sub(/^@!?%[A-Za-z0-9_]+[ \t]+/, "", text)
    op = text
    sub(/[ \t].*$/, "", op)
    # What becomes of the number of a message that was acquired: that of a letter has to be the one that is
    # expected; of credits there have to be so many, which is a difference.
    if (acquired != "" && text ~ acquired "([^0-9]|$)") {
      if (op ~ /^setp\.(eq|ne)\./) ++letters[name]
      else ++credits[name]
      acquired = ""
    }
    if (op ~ /^call(\.uni)?$/) {
      target = substr(text, length(op) + 1)
      sub(/^[ \t]+/, "", target)
      if (substr(target, 1, 1) == "(") sub(/^\([^)]*\)[ \t]*,[ \t]*/, "", target)
      sub(/[ \t,(].*$/, "", target)
      calls[name] = calls[name] " " target
      if (target ~ /^%/) count_operation("call", "of what is known only when it runs")
      return
    }
    if (op !~ memory) return
    count_operation(op, objection(op))
    # Words of 64 bits: numbers of messages.
    if (op ~ /^ld\.acquire\.sys\.(global\.)?[bus]64$/ && match(text, /%[A-Za-z0-9_]+/))
      acquired = substr(text, RSTART, RLENGTH)
    if (op ~ /^st\.relaxed\.sys\.(global\.)?[bus]64$/ && !has(name, system_fence)) ++unfenced[name]
  }
  function count_operation(op, why) {
    if (++count[name, op] == 1) ops[name] = ops[name] " " op
    wrong_with[name, op] = why
  }

  # How many operations like this a function has; and all that a kernel comes to.
  function has(f, like,   list, n, i, sum) {
    n = split(ops[f], list, " ")
    for (i = 1; i <= n; ++i) if (list[i] ~ like) sum += count[f, list[i]]
    return sum + 0
  }
  function reaches(like,   f, sum) {
    for (f in reached) sum += has(f, like)
    return sum + 0
  }
  function complain(f, text) {
    printf "WRONG: %s, %s: %s: %s\n", file, arch, text, f
    ++wrong
  }

  # Of any function.
  function check_operations(f,   list, n, i, why, rule) {
    n = split(ops[f], list, " ")
    for (i = 1; i <= n; ++i) {
      if (list[i] ~ /[.]sys([.]|$)/) system_wide += count[f, list[i]]
      why = wrong_with[f, list[i]]
      if (why == "") continue
      rule = rule_for(f, list[i])
      if (rule) used[rule] += count[f, list[i]]
      else complain(f, list[i] " (" count[f, list[i]] " times) " why)
    }
  }

  # Of a kernel that talks with others.
  function check_lane(kernel,   f, of_switch) {
    of_switch = kernel ~ /16reduce_in_switch/
    ++lanes
    if (letters[kernel] < 1) complain(kernel, "the numbers of letters are not acquired")
    if (credits[kernel] < 3)  # before it sends, before it writes to staging memory, and at the end
      complain(kernel, "credits are not acquired in all of three places")
    if (reaches(system_fence) < (of_switch ? 2 : 1))
      complain(kernel, "no fence for who is on another GPU")
    if (unfenced[kernel] > 0) complain(kernel, "a number is published in front of the fence")
    if (reaches("^st[.]release[.]sys[.]") < 1) complain(kernel, "the report to the host is not released")
    for (f in reached) {
      if (f ~ /16take_packets_of/ && has(f, "^ld[.]relaxed[.]sys[.](global[.])?b128$") < 1)
        complain(f, "packets of 16 bytes are not loaded at once")
      if (f ~ /15send_packets_of/ && has(f, "^st[.]relaxed[.]sys[.](global[.])?b128$") < 1)
        complain(f, "packets of 16 bytes are not stored at once")
    }
    if (of_switch && reaches("^multimem[.]") > 0) {
      ++switches
      if (has(kernel, "^fence[.]proxy[.]alias$") < 2)
        complain(kernel, "no proxy fences around what the switch does")
    }
  }

  # The functions that a kernel calls, and those that these call.
  function reach_all(kernel,   todo, n, i, k, list) {
    split("", reached)
    reached[kernel] = 1
    todo[n = 1] = kernel
    for (i = 1; i <= n; ++i)
      for (k = split(calls[todo[i]], list, " "); k > 0; --k)
        if ((list[k] in defined) && !(list[k] in reached)) {
          reached[list[k]] = 1
          todo[++n] = list[k]
        }
  }

  function end_image(   i, f) {
    for (i = 1; i <= entries; ++i) {
      if (entry[i] !~ /^_ZN5collx/) continue
      ++kernels
      reach_all(entry[i])
      for (f in reached)
        if (!(f in checked)) {
          checked[f] = 1
          check_operations(f)
        }
      if (entry[i] ~ /9run_lanes|16reduce_in_switch/) check_lane(entry[i])
    }
    in_body = is_pending = entries = 0
    split("", calls); split("", ops); split("", count); split("", wrong_with); split("", defined)
    split("", checked); split("", letters); split("", credits); split("", unfenced)
  }

  BEGIN {
    narrow = "has a narrower scope than the system"
    unknown = "is none of the operations that are known here: somebody has to think about it"
    system_fence = "^fence[.](acq_rel|release)[.]sys$"
    memory = "^(ld|ldu|st|atom|red|multimem|fence|membar|cp|mbarrier|tensormap|wgmma|tcgen05|discard|tex|" \
             "tld4|suld|sust|sured|griddepcontrol|clusterlaunchcontrol|barrier[.]cluster)([.]|$)"
    allow_all()
  }
  /^\/\/file / { end_image(); file = substr($0, 8); next }
  /\.version [0-9]+\.[0-9]+$/ { end_image(); next }
  /^\.target / { arch = $2; sub(/,.*/, "", arch); next }
  in_body {
    # Most lines are of no interest.
    if (buffer == "" && acquired == "" && /;[ \t]*$/ &&
        !/ld|st|at|re|mu|fe|me|cp|mb|ten|wg|tc|di|gr|cl|ba|su|te|ca|[{}]/) next
    line = $0
    sub(/\/\/.*/, "", line)
    # In object files PTX is not indented: a function ends with the brace that closes its first one.
    depth += gsub(/[{]/, "{", line) - gsub(/[}]/, "}", line)
    if (depth <= 0) { in_body = 0; next }
    if (line ~ /^[ \t]*(\.(loc|file)[ \t].*)?$/ || line ~ /^[$%A-Za-z0-9_]+:[ \t]*$/) next
    buffer = buffer " " line
    while (at = index(buffer, ";")) {
      statement(substr(buffer, 1, at - 1))
      buffer = substr(buffer, at + 1)
    }
    if (buffer ~ /^[ \t]*$/) buffer = ""
    next
  }
  /^(\.[a-z]+ )*\.(entry|func)[ \t(]/ {
    is_entry = /\.entry/
    name = $0
    sub(/^.*\.(entry|func)[ \t]*/, "", name)
    sub(/^\([^)]*\)[ \t]*/, "", name)
    sub(/[ \t(;].*$/, "", name)
    is_pending = !/;/
    next
  }
  is_pending && /^[{]/ {
    is_pending = 0
    in_body = depth = 1
    buffer = acquired = ""
    defined[name] = 1
    if (is_entry) entry[++entries] = name
    next
  }
  is_pending && /;/ { is_pending = 0 }  # declared only
  END {
    end_image()
    for (i = 1; i <= rules; ++i) printf "allowed %d times: %s (%s)\n", used[i], rule_what[i], rule_why[i]
    printf "%d kernels, %d of them talk with others, %d by way of a switch; %d operations of the scope of " \
           "the system, %d wrong\n", kernels, lanes, switches, system_wide, wrong
    if (lanes == 0) print "no kernel that talks with others was found: build the preset cuda first"
    if (whole_build && lanes > 0 && switches == 0) print "none of them uses a switch: build for sm_90, too"
    exit wrong > 0 || lanes == 0 || (whole_build && switches == 0)
  }' | c++filt | sed 's/collx::abi_1:://g'
