// SPDX-License-Identifier: Apache-2.0
// Copies of what fits a letter: a call to memcpy would cost more than the rest of sending it.
#pragma once

#include <cstddef>
#include <cstring>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::device {

// Fewer than 64 bytes in moves of known sizes. (Of a size it can bound, a compiler makes a repeated move of
// bytes, which takes tens of cycles to begin, and what it stores is not forwarded to loads.)
COLLX_ALWAYS_INLINE void copy_below_64(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
  if ((bytes & 32) != 0) {
    std::memcpy(to, from, 16);
    std::memcpy(to + 16, from + 16, 16);
    to += 32, from += 32;
  }
  if ((bytes & 16) != 0) std::memcpy(to, from, 16), to += 16, from += 16;
  if ((bytes & 8) != 0) std::memcpy(to, from, 8), to += 8, from += 8;
  if ((bytes & 4) != 0) std::memcpy(to, from, 4), to += 4, from += 4;
  if ((bytes & 2) != 0) std::memcpy(to, from, 2), to += 2, from += 2;
  if ((bytes & 1) != 0) *to = *from;
}

// The common sizes as single moves.
COLLX_ALWAYS_INLINE void copy_few(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
  if (bytes == 8) std::memcpy(to, from, 8);
  else if (bytes == 4) std::memcpy(to, from, 4);
  else if (bytes == 16) std::memcpy(to, from, 16);
  else if (bytes == 32) std::memcpy(to, from, 32);
  else if (bytes != 0) bytes < 64 ? copy_below_64(to, from, bytes) : void(std::memcpy(to, from, bytes));
}

}  // namespace collx::inline abi_1::device
