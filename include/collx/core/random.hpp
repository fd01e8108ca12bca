// SPDX-License-Identifier: Apache-2.0
// Pseudo-random numbers that replay: the same seed gives the same numbers on every machine.
#pragma once

#include <cstdint>

#include "collx/core/config.hpp"

namespace collx::inline abi_1 {

// The generator SplitMix64 (Steele, Lea, Flood 2014): a counter and a mixer, so a seed is enough to
// replay a run on any machine.
class replayable_random {
 public:
  explicit replayable_random(std::uint64_t seed) noexcept : state_(seed) {}
  [[nodiscard]] std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // A number below `bound`, which is not 0. The bias is below bound / 2^64.
  [[nodiscard]] std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>(next() % bound);
  }

 private:
  std::uint64_t state_;
};

}  // namespace collx::inline abi_1
