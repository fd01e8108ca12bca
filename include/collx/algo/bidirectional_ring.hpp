// SPDX-License-Identifier: Apache-2.0
// Ring in both directions: the two links of every rank carry data both ways at the same time. While
// reducing, each half of a chunk takes its own way round; while gathering, whole chunks go the shorter
// way, which halves the rounds. The choice for large vectors where links are duplex and only neighbours
// are near.
//
// Cost for n ranks and M bytes:
//   all_reduce      n-1 + ceil((n-1)/2) rounds, 2(n-1)/n M bytes
//   reduce_scatter  n-1 rounds,                  (n-1)/n M
//   all_gather      ceil((n-1)/2) rounds,        (n-1)/n M
// No direction carries more than half of the bytes, or in a gather among an even number of ranks one chunk
// more. Contributions are combined in the order of the ways round, so the operator must commute.
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct bidirectional_ring {
  static constexpr char const* name = "bidirectional_ring";

  struct all_reduce;
  struct reduce_scatter;
  struct all_gather;

 private:
  // The rank `hops` to the right (to the left, if negative), -n < hops < n.
  static constexpr COLLX_HD rank_t away(problem p, std::int32_t hops) {
    rank_t const rank = p.rank + hops;
    return rank < 0 ? rank + p.size : rank >= p.size ? rank - p.size : rank;
  }

  // Each neighbour once: of two ranks they are the same one.
  static constexpr COLLX_HD peer_set neighbours(problem p) {
    if (p.size <= 2) return p.size == 1 ? nobody() : only(1 - p.rank);
    return {away(p, -1), 2, 2};
  }

  // Even steps reduce to the right, odd ones to the left. Half h of block c starts at the neighbour of c
  // that has the whole ring before it, and is complete at rank c after n-1 hops.
  static constexpr COLLX_HD primitive reduce(problem p, std::int32_t s) {
    std::int32_t const half = s % 2, hop = s / 2, last_hop = p.size - 1;
    std::int32_t const ahead = half == 0 ? 1 : -1;
    std::int32_t const chunk = 2 * away(p, ahead * (last_hop - hop)) + half;
    rank_t const sender = away(p, -ahead);
    bool const reduces = hop > 0, last = hop == last_hop;
    return {.from = reduces ? in_rank_order(p.rank, sender) : nobody(),
            .to = last ? nobody() : only(away(p, ahead)),
            .operand = {place::input, chunk, 1},
            .target = {place::output, chunk, 1},
            .reduce = reduces,
            .store = last,
            .complete = reduces && last};
  }

  // First the own block, of `unit` chunks, to both sides; then those from 1, 2, 3, ... hops away, from the
  // left and the right by turns.
  static constexpr COLLX_HD primitive gather(problem p, std::int32_t s, std::int32_t unit, place own) {
    region const target{place::output, unit * p.rank, unit};
    if (s == 0)
      return {.to = neighbours(p),
              .operand = {own, unit * p.rank, unit},
              .target = target,
              .store = own == place::input};
    std::int32_t const hop = (s + 1) / 2, ahead = s % 2 == 1 ? 1 : -1;
    std::int32_t const hops = ahead == 1 ? p.size / 2 : (p.size - 1) / 2;
    return {.from = only(away(p, -ahead)),
            .to = hop < hops ? only(away(p, ahead)) : nobody(),
            .target = {place::output, unit * away(p, -ahead * hop), unit},
            .store = true};
  }
};

struct bidirectional_ring::reduce_scatter {
  using contract = contract::reduce_scatter;
  static constexpr reproducibility reproduces = reproducibility::run_to_run;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return 2 * n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return 2 * p.size; }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) { return reduce(p, s); }
  static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n - 1, 2 * (n - 1), 2 * (n - 1)}; }
};

struct bidirectional_ring::all_gather {
  using contract = contract::all_gather;
  static constexpr known_counts counts = known_counts::agreed;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return p.size; }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    return gather(p, s, 1, place::input);
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n / 2, n - 1, n - 1}; }
};

// One after the other. What is sent here and stored over there comes back complete only after everybody
// has read it, so nothing is copied.
struct bidirectional_ring::all_reduce {
  using contract = contract::all_reduce;
  static constexpr reproducibility reproduces = reproducibility::run_to_run;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return 2 * n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return p.size == 1 ? 2 : 3 * p.size; }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    return s < 2 * p.size ? reduce(p, s) : gather(p, s - 2 * p.size, 2, place::output);
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    return {n - 1 + n / 2, 3 * (n - 1), 4 * (n - 1)};
  }
};

}  // namespace collx::inline abi_1::algo
