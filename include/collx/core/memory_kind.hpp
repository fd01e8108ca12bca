// SPDX-License-Identifier: Apache-2.0
// Where the buffers of a call lie.
#pragma once

#include <cstdint>

namespace collx::inline abi_1 {

// In memory that peers reach (symmetric; with threads any), or not (unshared); any: nothing is said of it.
enum class memory_kind : std::uint8_t { any, unshared, symmetric };

[[nodiscard]] constexpr char const* name(memory_kind kind) {
  return kind == memory_kind::symmetric ? "symmetric" : kind == memory_kind::unshared ? "private" : "any";
}

}  // namespace collx::inline abi_1
