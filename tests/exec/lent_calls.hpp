// SPDX-License-Identifier: Apache-2.0
// What tests of blocks that are lent whole have in common: blocks of several fragments, by whose elements one
// can tell whose they are, and for whom.
#pragma once

#include <span>
#include <stdexcept>
#include <string>

#include "collx/core/types.hpp"
#include "collx/transport/settings.hpp"
#include "require.hpp"

namespace lent {

using collx::rank_t;

// A block is then of 7 fragments and more.
inline collx::transport::settings const small_staging{.staging_bytes = 64 * 1024, .single_copy_bytes = 1024};
inline constexpr std::size_t block = 57'001;

// What rank `from` has for rank `to` at `i`.
inline int value(rank_t from, rank_t to, std::size_t i) {
  return from * 7919 + to * 101 + static_cast<int>(i % 4099);
}

inline void fill(std::span<int> elements, rank_t from, rank_t to) {
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = value(from, to, i);
}

inline void check(std::span<int const> elements, rank_t from, rank_t to, std::string const& what) {
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i] != value(from, to, i))
      throw std::runtime_error(what + ": element " + std::to_string(i) + " from " + std::to_string(from) +
                               " to " + std::to_string(to) + " is " + std::to_string(elements[i]));
}

}  // namespace lent
