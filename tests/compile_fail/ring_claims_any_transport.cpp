// SPDX-License-Identifier: Apache-2.0
// first error: the brackets of the sums depend on rank or chunk more than the declared `reproduces` allows
// shows: with_ranks<2>
#include "collx/algo/ring.hpp"
#include "collx/schedule/proves.hpp"

struct boastful : collx::algo::ring::all_reduce {
#ifndef FIXED
  static constexpr collx::reproducibility reproduces = collx::reproducibility::any_transport;
#endif
};

static_assert(collx::proves<boastful, 2, 8>);
