// SPDX-License-Identifier: Apache-2.0
// Dissemination barrier: in round k every rank tells the rank 2^k further round the ring that it is
// here, and with it all of whom it knows. The fewest rounds there are, for any number of ranks.
//
//   Hensgen, Finkel, Manber: Two algorithms for barrier synchronization (1988).
//
// Cost for n ranks: ceil(log2 n) rounds, as many messages per rank, no bytes.
#pragma once

#include "collx/algo/power_of_two.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

// After round k a rank knows the 2^(k+1) ranks up to itself. For n that is no power of two it hears of
// some of them twice: right for a barrier, and wrong for a sum.
struct dissemination {
  static constexpr char const* name = "dissemination";

  struct barrier {
    using contract = contract::barrier;
    static constexpr COLLX_HD bool supports(rank_t) { return true; }
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
    static constexpr COLLX_HD std::int32_t step_count(problem p) { return 2 * detail::ceil_log2(p.size); }

    // Send and receive by turns, no chunks at all.
    static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      rank_t const distance = 1 << (s / 2);
      rank_t const behind = p.rank - distance, ahead = p.rank - (p.size - distance);
      if (s % 2 == 0) return {.to = only(ahead < 0 ? ahead + p.size : ahead)};
      return {.from = only(behind < 0 ? behind + p.size : behind)};
    }

    static constexpr COLLX_HD cost documented_cost(rank_t n) {
      std::int32_t const rounds = detail::ceil_log2(n);
      return {rounds, rounds, 0};
    }
  };
};

}  // namespace collx::inline abi_1::algo
