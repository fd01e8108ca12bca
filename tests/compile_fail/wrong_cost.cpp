// SPDX-License-Identifier: Apache-2.0
// first error: the longest chain of messages differs from documented_cost().rounds
// shows: with_ranks<2>
#include "collx/algo/ring.hpp"
#include "collx/schedule/proves.hpp"

struct optimistic : collx::algo::ring::all_reduce {
#ifndef FIXED
  static constexpr collx::cost documented_cost(collx::rank_t n) { return {n - 1, 2 * (n - 1), 2 * (n - 1)}; }
#endif
};

static_assert(collx::proves<optimistic, 2, 8>);
