// SPDX-License-Identifier: Apache-2.0
// first error: a step waits for a message that its peer never sends
// shows: with_ranks<3>
// shows: and_root<2>
#include "collx/algo/direct.hpp"
#include "collx/schedule/proves.hpp"

// Right for every root but 2, so for two ranks and for root 0 and 1 of three.
struct unfair : collx::algo::direct_one_shot::broadcast {
#ifndef FIXED
  static constexpr std::int32_t step_count(collx::problem p) { return p.rank == 2 && p.root == 2 ? 0 : 1; }
#endif
};

static_assert(collx::proves<unfair, 2, 8>);
