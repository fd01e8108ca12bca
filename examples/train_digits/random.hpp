// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same everywhere. The standard's engines are, but its distributions and
// std::shuffle are not: two standard libraries would split and initialise differently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace train_digits {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class random_source {
 public:
  explicit constexpr random_source(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // In [0, bound). The bias of the remainder is below bound / 2^64: of no account here.
  constexpr std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }

  // In [-limit, limit), from 24 bits: exact in a float.
  constexpr float symmetric(float limit) {
    return (static_cast<float>(next() >> 40) * 0x1p-23f - 1.0f) * limit;
  }

 private:
  std::uint64_t state_;
};

template <class Sequence>
constexpr void shuffle(Sequence& sequence, std::uint64_t seed) {
  random_source random(seed);
  for (std::size_t left = sequence.size(); left > 1; --left)
    std::swap(sequence[left - 1], sequence[random.below(left)]);
}

}  // namespace train_digits
