// SPDX-License-Identifier: Apache-2.0
// Binomial tree: messages travel between one root and everybody, in a logarithmic number of rounds.
// The choice for broadcast and reduce of small vectors, and wherever few messages matter more than
// bytes.
//
// Cost for n ranks and M bytes, sent by the busiest rank; T is the largest power of two below n:
//   broadcast   floor(log2 n) rounds, ceil(log2 n) M bytes (the root)
//   reduce      floor(log2 n) rounds, M
//   all_reduce  2 floor(log2 n) rounds, ceil(log2 n) M    (reduce to rank 0, then broadcast)
//   gather      floor(log2 n) rounds, T/n M;     scatter  floor(log2 n) rounds, (n-1)/n M (the root)
// Contributions are combined in rank order, with the same brackets for every root: moving the root
// does not change a bit of the result.
//
// The usual tree numbers ranks from the root on, which breaks rank order for every root but 0, tears
// neighbours apart, and makes the chunks of a block wrap around. Here blocks are aligned
// (knomial_blocks.hpp). This costs nothing over the usual tree, except one round more for the roots
// from 2^floor(log2 n) on.
#pragma once

#include "collx/algo/knomial_tree.hpp"

namespace collx::inline abi_1::algo {

struct binomial_tree {
  static constexpr char const* name = "binomial_tree";

  using broadcast = knomial_tree<2>::broadcast;
  struct reduce;
  using all_reduce = knomial_tree<2>::all_reduce;
  using gather = knomial_tree<2>::gather;
  using scatter = knomial_tree<2>::scatter;
};

// Two blocks meet in rank order whoever leads them, so here the root can lead its own. Only the root
// has an output, so the partial results of the others live in scratch.
struct binomial_tree::reduce {
  using contract = contract::reduce;
  static constexpr reproducibility reproduces = reproducibility::any_transport;
  static constexpr bool keeps_rank_order = true;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
  // Two blocks of two are the smallest that make a rank join twice without being the root.
  static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t n) { return n > 4 ? 1 : 0; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    std::int32_t const joins = blocks::meetings(p);
    return joins > 1 ? joins : 1;
  }

  // A rank joins its children's blocks to its own, the nearest first, and sends the last result up.
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    std::int32_t const meetings = blocks::meetings(p);
    bool const is_root = p.rank == p.root;
    bool const joins = meetings > 0;
    bool const last = s >= meetings - 1;
    place const partial = is_root ? place::output : place::scratch;
    rank_t const child = blocks::meeting_from_top(p, meetings - 1 - s).others().member(0, p.size);
    return {.from = joins ? in_rank_order(p.rank, child) : nobody(),
            .to = last && !is_root ? only(blocks::parent(p)) : nobody(),
            .operand = {s == 0 ? place::input : partial, 0, 1},
            .target = {partial, 0, 1},
            .reduce = joins,
            .store = is_root || !last,
            .complete = joins && last && is_root};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) { return {blocks::levels(n), n > 1, n > 1}; }
  static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
    return {knomial_tree<2>::broadcast::documented_cost(n, root).rounds, n > 1, n > 1};
  }

 private:
  using blocks = detail::knomial_blocks<2>;
};

}  // namespace collx::inline abi_1::algo
