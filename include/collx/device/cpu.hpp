// SPDX-License-Identifier: Apache-2.0
// What this processor can do, asked once when the program starts.
#pragma once

#include "collx/core/config.hpp"

#if defined(COLLX_WIDE_VECTORS)
#include <cpuid.h>
#endif

namespace collx::inline abi_1::device::cpu {

// 512-bit vectors: a store of a whole cache line need not fetch the line first, which halves the
// traffic of a reduction that runs in the second-level cache.
#if defined(COLLX_WIDE_VECTORS)
inline bool const wide_vectors = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}();

// Whether streams want help with what they read next: several pages walked at a time, or lines asked for by
// instructions. Intel's Xeons (fourth generation) take 0.8 of the time with it, AMD's Zen 5 (family 26),
// which fetches ahead across pages by itself, up to 1.6 times as long; others were not timed with and
// without (docs/decisions.md).
inline bool const wants_help_fetching = [] {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__builtin_cpu_is("amd") || __get_cpuid(1, &a, &b, &c, &d) == 0) return true;
  unsigned const base_family = a >> 8 & 0xf, extended_family = a >> 20 & 0xff;
  return base_family + extended_family < 26;
}();

// Whether a C library's memcpy has the processor copy strings (rep movsb) where vectors would be quicker:
// GNU's does so on AMD from 4 KiB on (seen with version 2.36).
inline bool const copies_strings_slowly = wide_vectors && __builtin_cpu_is("amd");
#endif

}  // namespace collx::inline abi_1::device::cpu
