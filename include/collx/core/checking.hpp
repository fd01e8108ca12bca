// SPDX-License-Identifier: Apache-2.0
// How much a collective verifies before it trusts its arguments.
#pragma once

#include "collx/core/types.hpp"

namespace collx::inline abi_1 {

enum class checking_level : std::uint8_t {
  // Arguments of this rank, and the byte count of every message that arrives. Always on: it costs
  // a comparison.
  normal = 0,
  // Before each collective the ranks compare what they were called with (collective, form: blocking,
  // started, urgent, persistent; count, element type, operator, root, algorithm) and a difference is
  // reported by name. Costs one small all_gather per call, also where the call would wait for nobody.
  communication = 1,
};

}  // namespace collx::inline abi_1
