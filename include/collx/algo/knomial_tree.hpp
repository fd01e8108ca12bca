// SPDX-License-Identifier: Apache-2.0
// k-nomial tree: K neighbouring blocks of ranks meet at every level, so a tree has log_K n levels.
// With K = 2 it is the binomial tree. A larger K buys fewer rounds with more messages per round; the
// choice where one rank can serve several at once: fan-in in one pass, fan-out of one staged copy.
//
// Cost for n ranks and M bytes, sent by the busiest rank; L = ceil(log_K n), T = K^(L-1):
//   broadcast   L rounds, ((K-1)(L-1) + ceil(n/T) - 1) M bytes (the root)
//   reduce      L rounds, M
//   all_reduce  up to 2L rounds, bytes as in broadcast     (reduce to rank 0, then broadcast)
//   gather      L rounds, T/n M;     scatter  L rounds, (n-1)/n M (the root)
// With few ranks in the last block, some roots need a round less (knomial_blocks::longest_path).
// Contributions are combined in rank order, with the same brackets for every root.
//
// Who leads which ranks is said in knomial_blocks.hpp. In reduce a root in the middle of its blocks
// could not join all K of a level in rank order with one fan-in. There the first rank leads every
// block, the root's too, and the leaders of the largest blocks all send to the root.
#pragma once

#include "collx/algo/composed_name.hpp"
#include "collx/algo/knomial_blocks.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

template <std::int32_t K>
struct knomial_tree {
 private:
  using blocks = detail::knomial_blocks<K>;
  static constexpr detail::composed_name spelled{"knomial_tree", K};

 public:
  static constexpr char const* name = spelled.text;

  struct broadcast;
  struct reduce;
  struct all_reduce;
  struct gather;
  struct scatter;

 private:
  // What all of them answer alike.
  struct one_chunk {
    static constexpr COLLX_HD bool supports(rank_t) { return true; }
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
  };
  struct chunk_per_rank {
    static constexpr COLLX_HD bool supports(rank_t) { return true; }
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  };

  static constexpr COLLX_HD std::int32_t at_least_one(std::int32_t count) { return count > 1 ? count : 1; }
  static constexpr COLLX_HD std::int32_t top_width(rank_t n) { return blocks::width(blocks::levels(n) - 1); }
  static constexpr COLLX_HD bool in_first_block(rank_t n, rank_t root) {
    return n == 1 || root < top_width(n);
  }

  static constexpr COLLX_HD std::int32_t rounds_from(rank_t n, rank_t root) {
    return blocks::longest_path(n, in_first_block(n, root));
  }
  // Whom the busiest rank serves: the root, or a leader of a full largest block.
  static constexpr COLLX_HD std::int32_t children_of_busiest(rank_t n, rank_t root) {
    std::int32_t const from_root = blocks::children({root, n, root});
    std::int32_t const from_leader = in_first_block(n, root) ? 0 : (K - 1) * (blocks::levels(n) - 1);
    return from_root > from_leader ? from_root : from_leader;
  }

  // One fan-out per level, the largest blocks first: they have the longest way to go.
  static constexpr COLLX_HD std::int32_t broadcast_steps(problem p) {
    return at_least_one(blocks::meetings(p));
  }
  static constexpr COLLX_HD primitive broadcast_step(problem p, std::int32_t s, place origin) {
    bool const is_root = p.rank == p.root;
    return {.from = s == 0 && !is_root ? only(blocks::parent(p)) : nobody(),
            .to = s < blocks::meetings(p) ? blocks::meeting_from_top(p, s).others() : nobody(),
            .operand = {is_root ? origin : place::output, 0, 1},
            .target = {place::output, 0, 1},
            .store = s == 0};
  }

  // Where a rank stands in a reduction: as if rank 0 were the root, but below the last level.
  struct climb {
    std::int32_t fan_ins = 0;  // on the levels 0, 1, ... of the blocks that it leads
    std::int32_t steps = 0;    // in which it joins them, and sends the result up
    rank_t parent = no_rank;
    bool stays = false;  // the result is not sent, because the root itself leads one of the largest blocks
  };
  static constexpr COLLX_HD climb find_climb(problem p) {
    problem const below{p.rank, p.size, 0};
    std::int32_t const last = blocks::levels(p.size) - 1;
    climb c;
    while (c.fan_ins < last && c.fan_ins < blocks::height(below) &&
           blocks::meet(p.rank, p.size, c.fan_ins).blocks > 1)
      ++c.fan_ins;
    bool const leads_largest = last < 0 || p.rank % blocks::width(last) == 0;
    c.stays = leads_largest && p.rank == p.root;
    c.parent = leads_largest ? p.root : blocks::parent(below);
    c.steps = c.stays ? c.fan_ins : at_least_one(c.fan_ins);
    return c;
  }

  static constexpr COLLX_HD std::int32_t reduce_steps(problem p) {
    return find_climb(p).steps + (p.rank == p.root);
  }
  static constexpr COLLX_HD primitive reduce_step(problem p, std::int32_t s, place partial) {
    climb const c = find_climb(p);
    region const operand{s == 0 ? place::input : partial, 0, 1};
    if (s == c.steps) return last_fan_in(p, c.stays ? operand : region{});
    bool const joins = c.fan_ins > 0;
    bool const sends = s == c.steps - 1 && !c.stays;
    auto const m = blocks::meet(p.rank, p.size, s);
    peer_set const joined{p.rank, m.width, m.blocks};
    return {.from = joins ? joined : nobody(),
            .to = sends ? only(c.parent) : nobody(),
            .operand = operand,
            .target = {partial, 0, 1},
            .reduce = joins,
            .store = !sends};
  }
  // The leaders of the largest blocks meet at the root, which may be one of them.
  static constexpr COLLX_HD primitive last_fan_in(problem p, region operand) {
    region const result{place::output, 0, 1};
    if (p.size == 1) return {.operand = operand, .target = result, .store = true};
    auto const m = blocks::meet(0, p.size, blocks::levels(p.size) - 1);
    return {.from = {0, m.width, m.blocks},
            .operand = operand,
            .target = result,
            .reduce = true,
            .store = true,
            .complete = true};
  }
};

template <std::int32_t K>
struct knomial_tree<K>::broadcast : one_chunk {
  using contract = contract::broadcast;
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return broadcast_steps(p); }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    return broadcast_step(p, s, place::input);
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    std::int32_t const messages = children_of_busiest(n, 0);
    return {blocks::levels(n), messages, messages};
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
    std::int32_t const messages = children_of_busiest(n, root);
    return {rounds_from(n, root), messages, messages};
  }
};

// Only the root has an output, so the partial results of the others live in scratch.
template <std::int32_t K>
struct knomial_tree<K>::reduce : one_chunk {
  using contract = contract::reduce;
  static constexpr reproducibility reproduces = reproducibility::any_transport;
  static constexpr bool keeps_rank_order = true;
  // Nobody but the root joins twice before there are blocks of level 2 below the last level.
  static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t n) { return n > K * K; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return reduce_steps(p); }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    return reduce_step(p, s, p.rank == p.root ? place::output : place::scratch);
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n) { return {blocks::levels(n), n > 1, n > 1}; }
  // A root that leads no largest block has its own vector travel to a leader and back.
  static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
    return {blocks::longest_path(n, root == 0), n > 1, n > 1};
  }
};

// What a rank sends up and later overwrites has been read by then: the result depends on it.
template <std::int32_t K>
struct knomial_tree<K>::all_reduce : one_chunk {
  using contract = contract::all_reduce;
  static constexpr reproducibility reproduces = reproducibility::any_transport;
  static constexpr bool keeps_rank_order = true;
  // Rank 0 turns round within one step; everybody else waits for the result to come back.
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    p.root = 0;
    return reduce_steps(p) + broadcast_steps(p) - (p.rank == 0);
  }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    p.root = 0;
    std::int32_t const up = reduce_steps(p);
    if (s >= up) return broadcast_step(p, s - up + (p.rank == 0), place::output);
    primitive step = reduce_step(p, s, place::output);
    if (p.rank == 0 && s == up - 1) step.to = broadcast_step(p, 0, place::output).to;
    return step;
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    std::int32_t const messages = children_of_busiest(n, 0);
    return {2 * rounds_from(n, 0), messages, messages};
  }
};

// A leader collects the chunks of its block in scratch, from the smallest blocks on, and sends them as
// one run. The root collects in its output.
template <std::int32_t K>
struct knomial_tree<K>::gather : chunk_per_rank {
  using contract = contract::gather;
  static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t n) { return n > K ? top_width(n) : 0; }
  // Its own chunk, those of its children one by one, and the way up.
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    std::int32_t const children = blocks::children(p);
    return p.rank == p.root ? children + 1 : children == 0 ? 1 : children + 2;
  }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    bool const is_root = p.rank == p.root;
    std::int32_t const children = blocks::children(p);
    rank_t const shift = is_root ? 0 : p.rank;  // scratch begins with this rank's chunk
    place const here = is_root ? place::output : place::scratch;
    region const mine{place::input, p.rank, 1};
    if (!is_root && children == 0) return {.to = only(blocks::parent(p)), .operand = mine};
    if (s == 0) return {.operand = mine, .target = {here, p.rank - shift, 1}, .store = true};
    if (s > children) return {.to = only(blocks::parent(p)), .operand = {here, 0, blocks::led_chunks(p)}};
    auto const from = blocks::child(p, children - s, here);
    return {.from = only(from.leader),
            .target = {here, from.chunks.first - shift, from.chunks.count},
            .store = true};
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    return {blocks::levels(n), n > 1, n > 1 ? top_width(n) : 0};
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
    if (n == 1) return {};
    std::int32_t const w = top_width(n);
    std::int32_t const below = w / K > n - w ? w / K : n - w;
    return {rounds_from(n, root), 1, root < w && below < w ? below : w};
  }
};

// The same backwards: a leader gets the chunks of its block, hands them on from the largest blocks
// down, and keeps its own.
template <std::int32_t K>
struct knomial_tree<K>::scatter : chunk_per_rank {
  using contract = contract::scatter;
  static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t n) { return gather::scratch_chunks(n); }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return gather::step_count(p); }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    bool const is_root = p.rank == p.root;
    std::int32_t const children = blocks::children(p);
    rank_t const shift = is_root ? 0 : p.rank;
    place const here = is_root ? place::input : place::scratch;
    region const mine{place::output, p.rank, 1};
    if (!is_root && children == 0) return {.from = only(blocks::parent(p)), .target = mine, .store = true};
    if (!is_root && s == 0)
      return {.from = only(blocks::parent(p)), .target = {here, 0, blocks::led_chunks(p)}, .store = true};
    std::int32_t const index = is_root ? s : s - 1;
    if (index == children) return {.operand = {here, p.rank - shift, 1}, .target = mine, .store = true};
    auto const to = blocks::child(p, index, here);
    return {.to = only(to.leader), .operand = {here, to.chunks.first - shift, to.chunks.count}};
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    return {blocks::levels(n), children_of_busiest(n, 0), n - 1};
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
    return {rounds_from(n, root), children_of_busiest(n, root), n - 1};
  }
};

}  // namespace collx::inline abi_1::algo
