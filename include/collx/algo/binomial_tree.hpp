// SPDX-License-Identifier: Apache-2.0
// Binomial tree: whole vectors travel between one root and everybody, in a logarithmic number of
// rounds. The choice for broadcast and reduce of small vectors, and wherever few messages matter
// more than bytes.
//
// Cost for n ranks and M bytes, sent by the busiest rank:
//   broadcast   floor(log2 n) rounds, ceil(log2 n) M bytes (the root)
//   reduce      floor(log2 n) rounds, M
//   all_reduce  2 floor(log2 n) rounds, ceil(log2 n) M    (reduce to rank 0, then broadcast)
// Contributions are combined in rank order, with the same brackets for every root: moving the root
// does not change a bit of the result.
//
// The usual tree numbers ranks from the root on, which breaks rank order for every root but 0 and
// tears neighbours apart. Here 2^k neighbouring ranks form a block; the leader of a block is the
// root if it is in it, else the block's first rank. At level k the leaders of two neighbouring
// blocks meet, and the one that leads both goes on. This costs nothing over the usual tree, except
// one round more for the roots from 2^floor(log2 n) on.
#pragma once

#include "collx/algo/power_of_two.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct binomial_tree {
  static constexpr char const* name = "binomial_tree";

  struct broadcast;
  struct reduce;
  struct all_reduce;

 private:
  // Where a rank stands in the tree of its problem.
  struct position {
    rank_t parent = no_rank;  // none for the root
    std::int32_t height = 0;  // leads blocks up to 2^height ranks
    std::int32_t children = 0;
  };

  // The first rank of the block that meets this rank's at `level`. It is that block's leader, unless
  // the root is in it; it may be n or more, and the block empty.
  static constexpr COLLX_HD rank_t neighbour(problem p, std::int32_t level) {
    return ((p.rank >> level) ^ 1) << level;
  }

  static constexpr COLLX_HD position find(problem p) {
    position at;
    std::int32_t const top = detail::ceil_log2(p.size);
    while (at.height < top && leads(p, at.height + 1)) {
      at.children += neighbour(p, at.height) < p.size;
      ++at.height;
    }
    if (p.rank == p.root) return at;
    bool const meets_root = (p.rank >> (at.height + 1)) == (p.root >> (at.height + 1));
    at.parent = meets_root ? p.root : neighbour(p, at.height);
    return at;
  }

  static constexpr COLLX_HD bool leads(problem p, std::int32_t level) {
    return p.rank == p.root ||
           ((p.rank >> level) != (p.root >> level) && detail::block_start(p.rank, level) == p.rank);
  }

  // The index-th child from the leaves up: leader of the index-th block that joins this rank's.
  static constexpr COLLX_HD rank_t child(problem p, std::int32_t index) {
    std::int32_t level = 0;
    while (neighbour(p, level) >= p.size || index-- > 0) ++level;
    return neighbour(p, level);
  }

  // From a root in the lower half no path is longer than those inside that half, which is full, or
  // the hop to the upper half and those inside it. From the upper half the lower is one hop further.
  static constexpr COLLX_HD std::int32_t longest_path(rank_t n, rank_t root) {
    std::int32_t const floor = detail::floor_log2(n);
    return root < (1 << floor) ? floor : floor + 1;
  }

  // A rank joins its children's blocks to its own, the nearest first, and sends the last result up.
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    std::int32_t const children = find(p).children;
    return children > 1 ? children : 1;
  }

  static constexpr COLLX_HD primitive reduce_step(problem p, std::int32_t s, place partial) {
    position const at = find(p);
    bool const last = s == at.children - 1 || at.children == 0;
    bool const joins = at.children > 0;
    bool const is_root = p.rank == p.root;
    return {.from = joins ? in_rank_order(p.rank, child(p, s)) : nobody(),
            .to = last && !is_root ? only(at.parent) : nobody(),
            .operand = {s == 0 ? place::input : partial, 0, 1},
            .target = {partial, 0, 1},
            .reduce = joins,
            .store = is_root || !last,
            .complete = joins && last && is_root};
  }

  // The largest subtree is served first: it has the longest way to go.
  static constexpr COLLX_HD primitive broadcast_step(problem p, std::int32_t s, place origin) {
    position const at = find(p);
    bool const is_root = p.rank == p.root;
    return {.from = s == 0 && !is_root ? only(at.parent) : nobody(),
            .to = s < at.children ? only(child(p, at.children - 1 - s)) : nobody(),
            .operand = {is_root ? origin : place::output, 0, 1},
            .target = {place::output, 0, 1},
            .store = s == 0};
  }
};

struct binomial_tree::broadcast {
  using contract = contract::broadcast;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return binomial_tree::step_count(p); }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    return broadcast_step(p, s, place::input);
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    std::int32_t const levels = detail::ceil_log2(n);
    return {levels, levels, levels};
  }
  // A root in the upper half may serve fewer children than rank 0 then does in the lower.
  static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
    std::int32_t const from_root = find({root, n, root}).children;
    std::int32_t const from_leader = detail::ceil_log2(n) - 1;
    std::int32_t const messages = from_root > from_leader ? from_root : from_leader;
    return {longest_path(n, root), messages, messages};
  }
};

// Only the root has an output, so the partial results of the others live in scratch.
struct binomial_tree::reduce {
  using contract = contract::reduce;
  static constexpr bool keeps_rank_order = true;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
  // Two blocks of two are the smallest that make a rank join twice without being the root.
  static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t n) { return n > 4 ? 1 : 0; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return binomial_tree::step_count(p); }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    return reduce_step(p, s, p.rank == p.root ? place::output : place::scratch);
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n) { return {detail::ceil_log2(n), n > 1, n > 1}; }
  static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
    return {longest_path(n, root), n > 1, n > 1};
  }
};

// What a rank sends up and later overwrites has been read by then: the result depends on it.
struct binomial_tree::all_reduce {
  using contract = contract::all_reduce;
  static constexpr bool keeps_rank_order = true;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    p.root = 0;
    // Rank 0 turns round within one step; everybody else waits for the result to come back.
    return 2 * binomial_tree::step_count(p) - (p.rank == 0);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    p.root = 0;
    std::int32_t const up = binomial_tree::step_count(p);
    if (p.rank != 0)
      return s < up ? reduce_step(p, s, place::output) : broadcast_step(p, s - up, place::output);
    if (s >= up) return broadcast_step(p, s - up + 1, place::output);
    primitive step = reduce_step(p, s, place::output);
    if (s == up - 1) step.to = broadcast_step(p, 0, place::output).to;
    return step;
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    std::int32_t const messages = detail::ceil_log2(n);
    return {2 * detail::floor_log2(n), messages, messages};
  }
};

}  // namespace collx::inline abi_1::algo
