// SPDX-License-Identifier: Apache-2.0
// Recursive doubling: partners at distance 1, 2, 4, ... exchange all they have. The fewest rounds
// that one message per rank and round allows; the choice for small vectors on a network.
//
//   Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH (2005).
//
// Cost for n = 2^L ranks and M bytes, sent by the busiest rank:
//   all_reduce  L rounds, L M bytes;   all_gather  L rounds, (n-1)/n M bytes
// For any other n, with 2^L < n: the surplus ranks (detail::power_of_two_core) cost one round more, two
// if n > 3/2 2^L, and whoever stands for one sends M bytes more. In all_gather it also sends the
// surplus chunks of its growing block: min(2^i, n - 2^L) more chunks at level i.
// Contributions are combined in rank order, with the same brackets on every rank.
#pragma once

#include "collx/algo/power_of_two.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct recursive_doubling {
  static constexpr char const* name = "recursive_doubling";

  struct all_reduce;
  struct all_gather;
};

// Before level i a rank holds the combination of its aligned block of 2^i core ranks, and its
// partner that of the neighbouring block, so the lower rank's operand stands first.
struct recursive_doubling::all_reduce {
  using contract = contract::all_reduce;
  static constexpr bool keeps_rank_order = true;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    detail::power_of_two_core const core(p.size);
    return core.is_outside(p.rank) ? 2 : core.levels + 1;
  }

  // Step s > 0 finishes level s-1 and begins level s; step 0 takes the guest in, the last lets it go.
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    detail::power_of_two_core const core(p.size);
    if (core.is_outside(p.rank)) return outside(p, s);
    bool const guest = core.has_guest(p.rank);
    bool const last = s == core.levels;
    bool const reduces = s > 0 || guest;
    rank_t const sender = s > 0 ? core.partner(p.rank, s - 1) : p.rank + 1;
    rank_t const receiver = last ? p.rank + 1 : core.partner(p.rank, s);
    region const partial{s > 1 || (s == 1 && guest) ? place::output : place::input, 0, 1};
    return {.from = reduces ? in_rank_order(p.rank, sender) : nobody(),
            .to = !last || guest ? only(receiver) : nobody(),
            .operand = partial,
            .target = {place::output, 0, 1},
            .reduce = reduces,
            .store = reduces || last,
            // The next level overwrites what this one sends, and nothing tells that the partner has read it.
            .copy = !last,
            .complete = reduces && last};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    detail::power_of_two_core const core(n);
    std::int32_t const fold = core.surplus > 0;
    return {core.levels + core.fold_rounds(), core.levels + fold, core.levels + fold};
  }

 private:
  static constexpr COLLX_HD primitive outside(problem p, std::int32_t s) {
    if (s == 0) return {.to = only(p.rank - 1), .operand = {place::input, 0, 1}};
    return {.from = only(p.rank - 1), .target = {place::output, 0, 1}, .store = true};
  }
};

// Before level i a rank holds the chunks of its aligned block of 2^i core ranks.
struct recursive_doubling::all_gather {
  using contract = contract::all_gather;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    if (p.size == 1) return 1;
    detail::power_of_two_core const core(p.size);
    return core.is_outside(p.rank) ? 2 : 2 * core.levels + 2 * core.has_guest(p.rank);
  }

  // Without a guest: send and receive by turns, level by level. With one, a step before and one after.
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    detail::power_of_two_core const core(p.size);
    region const whole{place::output, 0, p.size};
    region const mine{place::input, p.rank, 1};
    if (core.is_outside(p.rank)) {
      if (s == 0) return {.to = only(p.rank - 1), .operand = mine};
      return {.from = only(p.rank - 1), .target = whole, .store = true};
    }
    bool const guest = core.has_guest(p.rank);
    if (guest && s == 0)
      return {
          .from = {p.rank, 1, 2}, .operand = mine, .target = {place::output, p.rank, 1, 1}, .store = true};
    std::int32_t const turn = s - guest;
    std::int32_t const level = turn / 2;
    if (level == core.levels) {
      if (guest) return {.to = only(p.rank + 1), .operand = whole};
      return {.operand = mine, .target = {place::output, p.rank, 1}, .store = true};  // one rank, alone
    }
    rank_t const partner = core.partner(p.rank, level);
    if (turn % 2 == 1)
      return {.from = only(partner),
              .target = core.chunks_of_block(place::output, partner, level),
              .store = true};
    if (s == 0)
      return {.to = only(partner), .operand = mine, .target = {place::output, p.rank, 1}, .store = true};
    return {.to = only(partner), .operand = core.chunks_of_block(place::output, p.rank, level)};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    detail::power_of_two_core const core(n);
    if (core.surplus == 0) return {core.levels, core.levels, n - 1};
    std::int64_t chunks = core.size() - 1 + n;
    for (std::int32_t level = 0; level < core.levels; ++level)
      chunks += core.surplus < (1 << level) ? core.surplus : 1 << level;
    return {core.levels + core.fold_rounds(), core.levels + 1, chunks};
  }
};

}  // namespace collx::inline abi_1::algo
