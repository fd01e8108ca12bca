// SPDX-License-Identifier: Apache-2.0
// What this processor can do, asked once when the program starts.
#pragma once

#include "collx/core/config.hpp"

namespace collx::inline abi_1::device::cpu {

// 512-bit vectors: a store of a whole cache line need not fetch the line first, which halves the
// traffic of a reduction that runs in the second-level cache.
#if defined(COLLX_WIDE_VECTORS)
inline bool const wide_vectors = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}();
#endif

}  // namespace collx::inline abi_1::device::cpu
