// SPDX-License-Identifier: Apache-2.0
// Broadcast by halving and doubling: a part of algo/recursive_halving_doubling.hpp, which says what it costs.
#pragma once

#include "collx/algo/power_of_two.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// The largest power of two among n ranks, with the root in it and nobody standing behind the root, who sends
// most as it is. The other ranks, in their order, are paired as far as there are surplus ones; the second of
// a pair is outside. Of a power of two everybody's index is the rank.
struct core_around_root {
  std::int32_t levels;
  rank_t surplus;
  rank_t root;

  constexpr COLLX_HD core_around_root(rank_t n, rank_t root_)
      : levels(floor_log2(n)), surplus(n - (1 << levels)), root(root_) {}

  [[nodiscard]] constexpr COLLX_HD rank_t size() const { return 1 << levels; }
  [[nodiscard]] constexpr COLLX_HD bool is_outside(rank_t rank) const {
    return is_paired(rank) && others_below(rank) % 2 == 1;
  }
  [[nodiscard]] constexpr COLLX_HD bool has_guest(rank_t rank) const {
    return is_paired(rank) && others_below(rank) % 2 == 0;
  }
  // The other one of a pair.
  [[nodiscard]] constexpr COLLX_HD rank_t mate(rank_t rank) const { return other(others_below(rank) ^ 1); }

  // Of a rank that is not outside: how many below it are not.
  [[nodiscard]] constexpr COLLX_HD rank_t index_of(rank_t rank) const {
    rank_t const pairs = others_below(rank) / 2;
    return rank - (pairs < surplus ? pairs : surplus);
  }
  [[nodiscard]] constexpr COLLX_HD rank_t rank_of(rank_t index) const {
    rank_t const root_index = index_of(root);
    if (index == root_index) return root;
    rank_t const i = index - (index > root_index);
    return other(i < surplus ? 2 * i : i + surplus);
  }

 private:
  [[nodiscard]] constexpr COLLX_HD rank_t others_below(rank_t rank) const { return rank - (rank > root); }
  // The rank with a number among those that are not the root.
  [[nodiscard]] constexpr COLLX_HD rank_t other(rank_t number) const { return number + (number >= root); }
  [[nodiscard]] constexpr COLLX_HD bool is_paired(rank_t rank) const {
    return rank != root && others_below(rank) < 2 * surplus;
  }
};

// The root scatters along a binomial tree, then blocks of 1, 2, 4, ... core ranks exchange what they have.
// They are numbered by index XOR the root's, which maps aligned blocks to aligned blocks. A rank that
// scattered the run of a block still has it, and is not sent it again. Guests get everything at the end.
struct halving_broadcast {
  using contract = collx::contract::broadcast;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return core_around_root(n, 0).size(); }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    core_around_root const core(p.size, p.root);
    return core.is_outside(p.rank) ? 1 : 2 * core.levels + (p.rank == p.root || core.has_guest(p.rank));
  }

  // The root only sends, and copies for itself at the end; the others begin with a receive. Then come
  // `height` sends that scatter, `height` sends of levels at which this rank has all there is already,
  // and the remaining levels: a receive only, then send and receive by turns.
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    core_around_root const core(p.size, p.root);
    region const whole{place::output, 0, core.size()};
    if (core.is_outside(p.rank)) return {.from = only(core.mate(p.rank)), .target = whole, .store = true};
    at_work const at{core, core.index_of(p.rank) ^ core.index_of(p.root)};
    std::int32_t const height = trailing_zeros(at.number, core.levels);
    if (s == 2 * core.levels && at.number != 0) return {.to = only(core.mate(p.rank)), .operand = whole};
    if (s == 2 * core.levels)
      return {.operand = {place::input, 0, core.size()}, .target = whole, .store = true};
    if (at.number != 0 && s == 0) return at.receive(at.number, height);
    std::int32_t const turn = at.number == 0 ? s : s - 1;
    if (turn < height) return at.send(at.number ^ (1 << (height - 1 - turn)), height - 1 - turn);
    if (turn < 2 * height) return at.send(at.number, turn - height);
    std::int32_t const exchange = turn - 2 * height;
    std::int32_t const level = height + (exchange + 1) / 2;
    return exchange % 2 == 1 ? at.send(at.number, level) : at.receive(at.number ^ (1 << level), level);
  }

  // The rank with number 1 has waited longest, and a guest of its own waits for it. With root 0 it has one as
  // soon as anybody has.
  static constexpr COLLX_HD cost documented_cost(rank_t n) { return documented_cost(n, 0); }
  static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
    core_around_root const core(n, root);
    if (core.levels == 0) return {};
    bool const one_more = core.has_guest(core.rank_of(core.index_of(root) ^ 1));
    return {2 * core.levels - 1 + one_more, 2 * core.levels, 2 * (core.size() - 1)};
  }

 private:
  // To and from the partner at distance 2^level goes the run of the block of 2^level around a number.
  struct at_work {
    core_around_root const& core;
    rank_t number;

    [[nodiscard]] constexpr COLLX_HD primitive send(rank_t block, std::int32_t level) const {
      region run = run_of(block, level);
      if (number == 0) run.where = place::input;
      return {.to = partner(level), .operand = run};
    }
    [[nodiscard]] constexpr COLLX_HD primitive receive(rank_t block, std::int32_t level) const {
      return {.from = partner(level), .target = run_of(block, level), .store = true};
    }

   private:
    [[nodiscard]] constexpr COLLX_HD peer_set partner(std::int32_t level) const {
      return only(core.rank_of(number ^ (1 << level) ^ core.index_of(core.root)));
    }
    [[nodiscard]] static constexpr COLLX_HD region run_of(rank_t block, std::int32_t level) {
      return {place::output, block_start(block, level), 1 << level};
    }
  };
};

}  // namespace detail

}  // namespace collx::inline abi_1::algo
