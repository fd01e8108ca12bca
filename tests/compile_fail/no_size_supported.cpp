// SPDX-License-Identifier: Apache-2.0
// first error: the schedule does not support this number of ranks
#include "collx/algo/ring.hpp"
#include "collx/schedule/proves.hpp"

// A proof about no case at all would prove anything.
struct large_only : collx::algo::ring::all_reduce {
#ifdef FIXED
  static constexpr bool supports(collx::rank_t n) { return n > 4; }
#else
  static constexpr bool supports(collx::rank_t n) { return n > 8; }
#endif
};

static_assert(collx::proves<large_only, 2, 8>);
