// SPDX-License-Identifier: Apache-2.0
// Copies of what fits a letter: a call to memcpy would cost more than the rest of sending it.
#pragma once

#include <cstddef>
#include <cstring>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::device {

// The common sizes as single moves.
COLLX_ALWAYS_INLINE void copy_few(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
  if (bytes == 8) std::memcpy(to, from, 8);
  else if (bytes == 4) std::memcpy(to, from, 4);
  else if (bytes == 16) std::memcpy(to, from, 16);
  else if (bytes == 32) std::memcpy(to, from, 32);
  else if (bytes != 0) std::memcpy(to, from, bytes);
}

}  // namespace collx::inline abi_1::device
