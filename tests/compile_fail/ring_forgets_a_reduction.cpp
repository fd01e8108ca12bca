// SPDX-License-Identifier: Apache-2.0
// first error: an output chunk lacks a rank's contribution
// shows: with_ranks<2>
// shows: at_rank<0>
// shows: concerning_peer<0>
// shows: at_chunk<0>
#include "collx/algo/ring.hpp"
#include "collx/schedule/proves.hpp"

// A ring whose ranks pass the last partial sums on without adding their own part.
struct forgetful : collx::algo::ring::all_reduce {
  static constexpr collx::primitive step(collx::problem p, std::int32_t s) {
    collx::primitive step = collx::algo::ring::all_reduce::step(p, s);
#ifndef FIXED
    if (s == p.size - 1) {
      step.from = collx::only(p.rank == 0 ? p.size - 1 : p.rank - 1);
      step.reduce = step.complete = false;
    }
#endif
    return step;
  }
};

static_assert(collx::proves<forgetful, 2, 8>);
