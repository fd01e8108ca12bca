// SPDX-License-Identifier: Apache-2.0
// first error: the step needs `copy`
// shows: with_ranks<2>
// shows: in_step<0>
// shows: in_place
#include "collx/algo/direct.hpp"
#include "collx/schedule/proves.hpp"

// In place, the result overwrites the input while a slower peer may still read it.
struct forgets_to_copy : collx::algo::direct_one_shot::all_reduce {
  static constexpr collx::primitive step(collx::problem p, std::int32_t s) {
    collx::primitive step = collx::algo::direct_one_shot::all_reduce::step(p, s);
#ifndef FIXED
    step.copy = false;
#endif
    return step;
  }
};

static_assert(collx::proves<forgets_to_copy, 2, 8>);
