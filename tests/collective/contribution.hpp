// SPDX-License-Identifier: Apache-2.0
// Floats whose sum is another for every order of additions.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "collx/core/random.hpp"
#include "collx/core/types.hpp"

namespace rounded_sums {

// Of very different sizes, so that every order of additions rounds differently.
inline float contribution(collx::rank_t rank, std::size_t i) {
  collx::replayable_random random(static_cast<std::uint64_t>(rank) * 1'000'003 + i);
  float const digits = static_cast<float>(random.below(1u << 24)) - 0x1p23f;
  return std::ldexp(digits, static_cast<int>(random.below(16)) - 30);
}

}  // namespace rounded_sums
