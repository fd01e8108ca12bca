// SPDX-License-Identifier: Apache-2.0
// The members of a world's own communicator.
#pragma once

#include "collx/core/array.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1::transport {

// 0 .. size-1.
[[nodiscard]] inline array<rank_t> everybody(rank_t size) {
  array<rank_t> all(static_cast<std::size_t>(size));
  for (rank_t r = 0; r < size; ++r) all[static_cast<std::size_t>(r)] = r;
  return all;
}

}  // namespace collx::inline abi_1::transport
