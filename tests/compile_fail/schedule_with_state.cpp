// SPDX-License-Identifier: Apache-2.0
// first error: not a schedule: the type must be empty and trivially copyable
#include "collx/algo/ring.hpp"
#include "collx/schedule/proves.hpp"

struct remembers : collx::algo::ring::all_reduce {
#ifndef FIXED
  int cursor = 0;
#endif
};

static_assert(collx::proves<remembers, 2, 8>);
