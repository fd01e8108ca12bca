// SPDX-License-Identifier: Apache-2.0
// Recursive doubling: partners at distance 1, 2, 4, ... exchange all they have. The fewest rounds
// that one message per rank and round allows; the choice for small vectors on a network.
//
//   Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH (2005).
//   Hillis, Steele: Data parallel algorithms (1986), for the scans.
//
// Cost for n = 2^L ranks and M bytes, sent by the busiest rank:
//   all_reduce  L rounds, L M bytes;   all_gather  L rounds, (n-1)/n M bytes
//   scan, for any n             floor(log2 n) rounds, ceil(log2 n) M bytes (rank 0)
//   exclusive_scan, for n > 1   ceil(log2 n) rounds, (1 + ceil(log2(n-1))) M bytes (rank 1)
// For any other n, with 2^L < n, in all_reduce and all_gather: the surplus ranks (detail::power_of_two_core)
// cost one round more, two if n > 3/2 2^L, and whoever stands for one sends M bytes more. In all_gather it
// also sends the surplus chunks of its growing block: min(2^i, n - 2^L) more chunks at level i. Contributions
// are combined in rank order, with the same brackets on every rank.
#pragma once

#include "collx/algo/power_of_two.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct recursive_doubling {
  static constexpr char const* name = "recursive_doubling";

  struct all_reduce;
  struct all_gather;
  struct scan;
  struct exclusive_scan;
};

// Before level i a rank holds the combination of its aligned block of 2^i core ranks, and its
// partner that of the neighbouring block, so the lower rank's operand stands first.
struct recursive_doubling::all_reduce {
  using contract = contract::all_reduce;
  static constexpr reproducibility reproduces = reproducibility::any_transport;
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
    if (core.is_outside(p.rank))
      return detail::guest_step(s, p.rank - 1, {place::input, 0, 1}, {place::output, 0, 1});
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
};

// Before level i a rank holds the chunks of its aligned block of 2^i core ranks.
struct recursive_doubling::all_gather {
  using contract = contract::all_gather;
  static constexpr known_counts counts = known_counts::agreed;
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
    if (core.is_outside(p.rank)) return detail::guest_step(s, p.rank - 1, mine, whole);
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

// Before level i a rank holds the combination of the last 2^i ranks up to itself (or of all, if there
// are fewer). It sends that to the rank 2^i further on, and combines what comes from 2^i before.
struct recursive_doubling::scan {
  using contract = contract::scan;
  static constexpr reproducibility reproduces = reproducibility::any_transport;
  static constexpr bool keeps_rank_order = true;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    std::int32_t const receives = detail::ceil_log2(p.rank + 1), sends = detail::ceil_log2(p.size - p.rank);
    return (receives >= sends ? receives + 1 : sends) - begins_late(p);
  }

  // Step s > 0 finishes level s-1 and begins level s.
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    std::int32_t const level = s + begins_late(p);
    std::int32_t const receives = detail::ceil_log2(p.rank + 1), sends = detail::ceil_log2(p.size - p.rank);
    bool const reduces = level > 0 && level <= receives;
    // Rank 0 stores its vector at once; from then on it is output.
    bool const is_untouched = p.rank == 0 ? s == 0 : level <= 1;
    return {.from = reduces ? in_rank_order(p.rank - (1 << (level - 1)), p.rank) : nobody(),
            .to = level < sends ? only(p.rank + (1 << level)) : nobody(),
            .operand = {is_untouched ? place::input : place::output, 0, 1},
            .target = {place::output, 0, 1},
            .reduce = reduces,
            .store = reduces || s + p.rank == 0,
            // The next level overwrites what this one sends, and nothing tells that it has been read.
            .copy = level < receives};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    std::int32_t const messages = detail::ceil_log2(n);
    return {detail::floor_log2(n), messages, messages};
  }

 private:
  // The last rank has nothing to send before it has received.
  static constexpr COLLX_HD bool begins_late(problem p) { return p.rank > 0 && p.rank == p.size - 1; }
};

// The vectors are moved one rank to the right, into the outputs, and scanned there by the ranks from 1 on.
struct recursive_doubling::exclusive_scan {
  using contract = contract::exclusive_scan;
  static constexpr reproducibility reproduces = reproducibility::any_transport;
  static constexpr bool keeps_rank_order = true;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    std::int32_t const gives = p.rank < p.size - 1;
    if (p.rank == 0) return gives;
    // A last rank that is not the only one to scan takes its vector in a step of its own.
    return gives + scan::step_count(scanned(p)) + takes_apart(p);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    std::int32_t const gives = p.rank < p.size - 1;
    if (s < gives) return {.to = only(p.rank + 1), .operand = {place::input, 0, 1}, .copy = p.rank != 0};
    s -= gives;
    region const own{place::output, 0, 1};
    if (s == 0 && takes_apart(p)) return {.from = only(p.rank - 1), .target = own, .store = true};
    primitive step = scan::step(scanned(p), s - takes_apart(p));
    if (!step.from.empty()) ++step.from.first;
    if (!step.to.empty()) ++step.to.first;
    step.operand = own;
    if (s > 0) return step;
    step.from = only(p.rank - 1);
    step.store = true;
    return step;
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    if (n == 1) return {};
    std::int32_t const messages = 1 + detail::ceil_log2(n - 1);
    return {1 + detail::floor_log2(n - 1), messages, messages};
  }

 private:
  static constexpr COLLX_HD problem scanned(problem p) { return {p.rank - 1, p.size - 1, p.root, p.inner}; }
  static constexpr COLLX_HD bool takes_apart(problem p) { return p.rank > 1 && p.rank == p.size - 1; }
};

}  // namespace collx::inline abi_1::algo
