// SPDX-License-Identifier: Apache-2.0
// What the built-in tables are made of: rows that name an algorithm and say when it is chosen.
#pragma once

#include "collx/tune/question.hpp"

namespace collx::inline abi_1::tune {

// Bytes (as question::bytes counts them) and ranks up to which a row applies, and of what kind those must be.
// Rows do not look at the memory of a call, since ranks may call with different kinds.
template <class Algorithm, std::size_t BytesMax = any_bytes, rank_t SizeMax = any_size,
          situation Needs = situation{}>
struct row {
  static_assert(!Needs.all_near, "collx: calls whose ranks are all near have tables of their own");
  using algorithm = Algorithm;
  [[nodiscard]] static constexpr bool applies(std::size_t bytes, rank_t size, situation with) {
    return bytes <= BytesMax && size <= SizeMax && (!Needs.symmetric || with.symmetric) &&
           (!Needs.sharing || (with.sharing && size > 2)) &&  // two have one message each in any case
           (!Needs.grouped || with.grouped);
  }
};
inline constexpr situation symmetric_only{.symmetric = true};
inline constexpr situation sharing_only{.sharing = true};
inline constexpr situation grouped_only{.grouped = true};
inline constexpr situation grouped_and_sharing{.sharing = true, .grouped = true};

template <class... Rows>
struct table {};

template <class... First, class... Rest>
[[nodiscard]] consteval auto joined(table<First...>, table<Rest...>) {
  return table<First..., Rest...>{};
}

}  // namespace collx::inline abi_1::tune
