// SPDX-License-Identifier: Apache-2.0
// first error: this algorithm offers no schedule for this collective
#include "collx/algo/ring.hpp"
#include "collx/schedule/proves.hpp"

#ifdef FIXED
using collective = collx::contract::all_gather;
#else
using collective = collx::contract::broadcast;
#endif

static_assert(collx::proves_for<collx::algo::ring, collective, 2, 8>);
