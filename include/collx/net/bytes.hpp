// SPDX-License-Identifier: Apache-2.0
// Numbers in the order of the network.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::net {

inline void put_u32(std::byte* at, std::uint32_t value) noexcept {
  for (int i = 3; i >= 0; --i, value >>= 8) at[i] = static_cast<std::byte>(value & 0xff);
}
inline void put_u64(std::byte* at, std::uint64_t value) noexcept {
  for (int i = 7; i >= 0; --i, value >>= 8) at[i] = static_cast<std::byte>(value & 0xff);
}
[[nodiscard]] inline std::uint32_t get_u32(std::byte const* at) noexcept {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint32_t>(at[i]);
  return value;
}
[[nodiscard]] inline std::uint64_t get_u64(std::byte const* at) noexcept {
  return std::uint64_t{get_u32(at)} << 32 | get_u32(at + 4);
}

}  // namespace collx::inline abi_1::net
