// SPDX-License-Identifier: Apache-2.0
// first error: ranks wait for each other: the schedule cannot finish with this depth(size)
// shows: with_ranks<2>
// shows: concerning_peer<1>
#include "collx/algo/ring.hpp"
#include "collx/schedule/proves.hpp"

// A fused receive-reduce-send holds a message in each hand.
struct one_slot : collx::algo::ring::all_reduce {
#ifndef FIXED
  static constexpr std::int32_t depth(collx::rank_t) { return 1; }
#endif
};

static_assert(collx::proves<one_slot, 2, 8>);
