// SPDX-License-Identifier: Apache-2.0
// Where the elements of several vectors reach a 16-byte boundary together, and how the rest is visited.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::device::detail {

// The widest access of a thread.
inline constexpr std::size_t vector_bytes = 16;

// Addresses of which it is asked whether they are equally far from a vector's boundary.
class alignment {
 public:
  COLLX_HD_INLINE void add(void const* p) {
    std::uintptr_t const address = reinterpret_cast<std::uintptr_t>(p);
    if (count_++ == 0) first_ = address;
    differences_ |= address ^ first_;
  }

  // How many steps of `step_bytes` it is for all of them to a boundary, fewer than `limit`; else `limit`.
  [[nodiscard]] COLLX_HD_INLINE std::size_t steps(std::size_t step_bytes, std::size_t limit) const {
    std::size_t steps = differences_ % vector_bytes != 0 ? limit : 0;
    while (steps < limit && (first_ + steps * step_bytes) % vector_bytes != 0) ++steps;
    return steps;
  }

 private:
  std::uintptr_t first_ = 0, differences_ = 0;
  int count_ = 0;
};

// `count` elements to visit: from `begin` on, with a `gap` behind the first `split` of them.
struct places {
  std::size_t begin, count, split, gap;
  [[nodiscard]] COLLX_HD_INLINE std::size_t at(std::size_t i) const {
    return begin + i + (i < split ? 0 : gap);
  }
};

}  // namespace collx::inline abi_1::device::detail
