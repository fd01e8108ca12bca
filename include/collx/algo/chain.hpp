// SPDX-License-Identifier: Apache-2.0
// Chain: every rank takes from one neighbour and passes on to the other, slice by slice. As many
// rounds as there are hops, but nobody sends more than the vector once; the choice for broadcast and
// reduce of large vectors, where the slices of many hops travel at the same time.
//
// Cost for n ranks and M bytes, sent by the busiest rank:
//   broadcast  n-1 rounds, M bytes
//   reduce     max(root, n-1-root) rounds, M bytes: two chains, from both ends to the root
// Contributions are combined in rank order.
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct chain {
  static constexpr char const* name = "chain";

  struct broadcast;
  struct reduce;
};

// From the root to the right, round the end, up to the rank on the root's left.
struct chain::broadcast {
  using contract = contract::broadcast;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
  static constexpr COLLX_HD std::int32_t step_count(problem) { return 1; }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t) {
    rank_t const left = p.rank == 0 ? p.size - 1 : p.rank - 1;
    rank_t const right = p.rank == p.size - 1 ? 0 : p.rank + 1;
    return {.from = p.rank == p.root ? nobody() : only(left),
            .to = right == p.root ? nobody() : only(right),
            .operand = {place::input, 0, 1},
            .target = {place::output, 0, 1},
            .store = true};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n - 1, n > 1, n > 1}; }
};

// Ranks below the root pass upwards, ranks above it downwards, so the root joins the left chain,
// itself and the right chain in rank order.
struct chain::reduce {
  using contract = contract::reduce;
  static constexpr bool keeps_rank_order = true;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
  static constexpr COLLX_HD std::int32_t step_count(problem) { return 1; }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t) {
    bool const is_root = p.rank == p.root;
    rank_t const first = p.rank <= p.root && p.rank > 0 ? p.rank - 1 : p.rank;
    rank_t const last = p.rank >= p.root && p.rank < p.size - 1 ? p.rank + 1 : p.rank;
    peer_set const neighbours{first, 1, last - first + 1};
    return {.from = first < last ? neighbours : nobody(),
            .to = is_root ? nobody() : only(p.rank < p.root ? p.rank + 1 : p.rank - 1),
            .operand = {place::input, 0, 1},
            .target = {place::output, 0, 1},
            .reduce = first < last,
            .store = is_root,
            .complete = is_root && first < last};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n - 1, n > 1, n > 1}; }
  static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
    rank_t const above = n - 1 - root;
    return {root > above ? root : above, n > 1, n > 1};
  }
};

}  // namespace collx::inline abi_1::algo
