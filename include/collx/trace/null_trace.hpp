// SPDX-License-Identifier: Apache-2.0
// The trace sink that costs nothing: an empty type whose calls vanish. A sink sees each step of a
// rank once, when it is done.
#pragma once

#include "collx/schedule/primitive.hpp"

namespace collx::inline abi_1::trace {

struct null_trace {
  constexpr void step(problem, std::size_t /*fragment*/, std::int32_t /*index*/,
                      primitive const&) const noexcept {}
};

}  // namespace collx::inline abi_1::trace
