// SPDX-License-Identifier: Apache-2.0
// Pairwise exchange: in every round a rank talks to one other rank, and every two ranks meet once. As
// many rounds as there are partners, but nobody is sent to by many at once; the choice for large
// blocks on a network that a storm of messages would congest.
//
// Cost for n ranks (M: what one rank sends or gets, n blocks):
//   all_to_all  n-1 rounds (n if n is odd), (n-1)/n M bytes
//
// Blocks go straight from their sender to their receiver, so it serves all_to_all_v as well: a round costs
// what the larger of its two blocks does, and partners that have nothing for each other do not wait.
//
// Who meets whom is the timetable of a round-robin tournament. Both partners of a round are the same
// rank, rather than one ahead to send to and one behind to take from, because in place the block to a
// rank lies where the one from it will: it must have left before.
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct pairwise {
  static constexpr char const* name = "pairwise";

  struct all_to_all;

 private:
  // The players on the circle: the last rank stands in its middle, unless it is needed to make their
  // number odd.
  static constexpr COLLX_HD rank_t circle(rank_t n) { return n % 2 == 1 ? n : n - 1; }

  // In round s those meet whose numbers add up to s, round the circle. Who would meet itself meets the
  // middle; where that is empty, it must not ask.
  static constexpr COLLX_HD rank_t partner(problem p, std::int32_t s) {
    rank_t const m = circle(p.size);
    // The middle meets the number whose double is s, round the circle; m is odd.
    if (p.rank == m) return s % 2 == 0 ? s / 2 : (m + s) / 2;
    rank_t const other = s >= p.rank ? s - p.rank : s - p.rank + m;
    return other != p.rank ? other : m;
  }
};

struct pairwise::all_to_all {
  using contract = contract::all_to_all;
  static constexpr bool moves_blocks = true;
  static constexpr known_counts counts = known_counts::pairwise;
  static constexpr COLLX_HD bool supports(rank_t n) { return n <= paired_ranks_max; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n * n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return 2 * p.size - 1; }

  // The own block, then sends and receives by turns: two per partner.
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    if (s == 0) return {.operand = block_to(p, p.rank), .target = block_from(p, p.rank), .store = true};
    std::int32_t round = (s - 1) / 2;
    // With an odd number of ranks each sits out the one round in which it would meet itself.
    if (p.size % 2 == 1 && round >= 2 * p.rank % p.size) ++round;
    rank_t const other = partner(p, round);
    // Copied: in place, the partner's block lands where this one is.
    if (s % 2 == 1) return {.to = only(other), .operand = block_to(p, other), .copy = true};
    return {.from = only(other), .target = block_from(p, other), .store = true};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    return {n > 1 ? circle(n) : 0, n - 1, n - 1};
  }

 private:
  static constexpr COLLX_HD region block_to(problem p, rank_t other) {
    return {place::input, p.rank * p.size + other, 1};
  }
  static constexpr COLLX_HD region block_from(problem p, rank_t other) {
    return {place::output, other * p.size + p.rank, 1};
  }
};

}  // namespace collx::inline abi_1::algo
