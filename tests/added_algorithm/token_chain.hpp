// SPDX-License-Identifier: Apache-2.0
// The algorithm that this test adds: a broadcast in which every rank takes the vector from its left neighbour
// and passes it to its right one. n-1 rounds, one message.
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct token_chain {
  static constexpr char const* name = "token_chain";

  struct broadcast {
    using contract = collx::contract::broadcast;
    [[nodiscard]] COLLX_HD static constexpr bool supports(rank_t) { return true; }
    [[nodiscard]] COLLX_HD static constexpr std::int32_t chunk_count(rank_t) { return 1; }
    [[nodiscard]] COLLX_HD static constexpr std::int32_t step_count(problem) { return 1; }

    [[nodiscard]] COLLX_HD static constexpr primitive step(problem p, std::int32_t) {
      rank_t const left = (p.rank + p.size - 1) % p.size, right = (p.rank + 1) % p.size;
      return {.from = p.rank == p.root ? nobody() : only(left),
              .to = right == p.root ? nobody() : only(right),
              .operand = {place::input, 0, 1},
              .target = {place::output, 0, 1},
              .store = true};
    }

    [[nodiscard]] COLLX_HD static constexpr cost documented_cost(rank_t n) { return {n - 1, n > 1, n > 1}; }
  };
};

}  // namespace collx::inline abi_1::algo
