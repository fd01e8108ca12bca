// SPDX-License-Identifier: Apache-2.0
// Swing: recursive halving and doubling on a ring of ranks that keeps partners near: at distance 1, 1, 3, 5,
// 11, 21, ... instead of 1, 2, 4, 8, 16, 32, ..., to the left and to the right by turns. The choice on
// rings and tori, where every hop of a message loads a link.
//
//   De Sensi, Bonato, Saam, Hoefler: Swing: short-cutting rings for higher bandwidth allreduce (2024).
//
// Cost for n = 2^L ranks and M bytes:
//   all_reduce     2L rounds, 2(n-1)/n M bytes; for any other n as recursive_halving_doubling
//   reduce_scatter  L rounds,  (n-1)/n M in 2L-1 messages; half a vector of scratch
//   all_gather      L rounds,  (n-1)/n M in 2L-1 messages
// The last two exist for powers of two only. The operator must commute.
#pragma once

#include "collx/algo/power_of_two.hpp"
#include "collx/algo/recursive_halving_doubling.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// Core ranks x on a ring of 2^L. At level i the even ones go a(i) = (1 - (-2)^(i+1)) / 3 to the right, the
// odd ones as much to the left, so that x and its partner meet.
//
// Let c = 1/3 modulo 2^L, which a(i) is modulo 2^(i+1). The index that halving needs is x/2 for even x and
// (x-c)/2 for odd x, modulo 2^(L-1), with the parity as its highest bit. For then partners of level i < L-1
// have indices a multiple of 2^i, and an odd one, apart: they agree in the bits below and differ in bit i;
// and those of level L-1 agree in all but the parity.
struct swing_core : power_of_two_core {
  using power_of_two_core::power_of_two_core;

  // The number x of a core rank.
  [[nodiscard]] constexpr COLLX_HD rank_t place_of(rank_t rank) const {
    return power_of_two_core::index_of(rank);
  }
  [[nodiscard]] constexpr COLLX_HD rank_t wrapped(rank_t x) const { return x & (size() - 1); }

  // c: 2^L + 1 or 2^(L+1) + 1, whichever is a multiple of three, over three.
  [[nodiscard]] constexpr COLLX_HD rank_t third() const {
    return ((levels % 2 == 0 ? 2 : 1) * size() + 1) / 3;
  }

  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): another order is what this core is.
  [[nodiscard]] constexpr COLLX_HD rank_t index_of(rank_t rank) const {
    rank_t const x = place_of(rank);
    return x % 2 == 0 ? x / 2 : wrapped(x - third()) / 2 + size() / 2;
  }

  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): another order is what this core is.
  [[nodiscard]] constexpr COLLX_HD rank_t partner(rank_t rank, std::int32_t level) const {
    rank_t const x = place_of(rank), power = 2 << level;
    rank_t const swing = (level % 2 == 0 ? 1 + power : 1 - power) / 3;
    return rank_of(wrapped(x % 2 == 0 ? x + swing : x - swing));
  }
};

}  // namespace detail

struct swing {
  static constexpr char const* name = "swing";

  struct all_reduce;
  struct reduce_scatter;
  struct all_gather;

 private:
  // The even or odd blocks among those that `rank` has after halving at the levels below `level` > 0. They
  // lie 2^(level+1) apart; at the end there is one block, the rank's own.
  static constexpr COLLX_HD region blocks(place where, rank_t rank, rank_t n, std::int32_t level,
                                          std::int32_t parity) {
    detail::swing_core const core(n);
    if (level == core.levels) return {where, rank, 1};
    std::int32_t const pitch = 2 << level, c = core.third();
    rank_t const other = rank % 2 == 0 ? rank + c : rank - c;
    return {.where = where,
            .first = (rank % 2 == parity ? rank : other) & (pitch - 1),
            .count = n / pitch,
            .run = 1,
            .pitch = pitch};
  }

  // Four steps per level: sends and receives of even and odd blocks. Two at the last, where there is one
  // block.
  struct turn {
    std::int32_t level;
    bool sends;
    std::int32_t parity;
  };
  static constexpr COLLX_HD std::int32_t step_count(rank_t n) {
    return n == 1 ? 1 : 4 * detail::floor_log2(n) - 2;
  }
  static constexpr COLLX_HD turn turn_at(rank_t n, std::int32_t s) {
    std::int32_t const last = detail::floor_log2(n) - 1;
    if (s / 4 >= last) return {last, s - 4 * last == 0, 0};
    return {s / 4, s % 4 < 2, s % 2};
  }

  static constexpr COLLX_HD cost one_way(rank_t n) {
    std::int32_t const levels = detail::floor_log2(n);
    return {levels, levels > 0 ? 2 * levels - 1 : 0, n - 1};
  }
};

struct swing::all_reduce : detail::halving_and_doubling<detail::swing_core> {
  // Every chunk has a tree of its own.
  static constexpr reproducibility reproduces = reproducibility::run_to_run;
};

// At every level a rank gives away the blocks that its partner goes on with, and combines the others.
// Partial results live in scratch: those of the level-0 partner's half are never there, so every fourth
// even and every fourth odd block has a slot.
struct swing::reduce_scatter {
  using contract = contract::reduce_scatter;
  static constexpr reproducibility reproduces = reproducibility::run_to_run;
  static constexpr COLLX_HD bool supports(rank_t n) { return detail::is_power_of_two(n); }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t n) { return n > 2 ? n / 2 : 0; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return swing::step_count(p.size); }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    region const result{place::output, p.rank, 1};
    if (p.size == 1) return {.operand = {place::input, 0, 1}, .target = result, .store = true};
    turn const at = turn_at(p.size, s);
    detail::swing_core const core(p.size);
    rank_t const partner = core.partner(p.rank, at.level);
    region const chunks =
        blocks(place::input, at.sends ? partner : p.rank, p.size, at.level + 1, at.parity);
    region const operand = at.level == 0 ? chunks : in_scratch(chunks, p.size);
    if (at.sends) return {.to = only(partner), .operand = operand};
    bool const last = at.level == core.levels - 1;
    return {.from = in_rank_order(p.rank, partner),
            .operand = operand,
            .target = last ? result : in_scratch(chunks, p.size),
            .reduce = true,
            .store = true,
            .complete = last};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) { return one_way(n); }

 private:
  static constexpr COLLX_HD region in_scratch(region chunks, rank_t n) {
    chunks.where = place::scratch;
    chunks.first = chunks.first / 4 + (chunks.first % 2 == 1 ? n / 4 : 0);
    chunks.pitch /= 4;
    return chunks;
  }
};

// The same levels backwards: a rank sends all it has to its partner.
struct swing::all_gather {
  using contract = contract::all_gather;
  static constexpr COLLX_HD bool supports(rank_t n) { return detail::is_power_of_two(n); }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return swing::step_count(p.size); }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    region const mine{place::input, p.rank, 1}, home{place::output, p.rank, 1};
    if (p.size == 1) return {.operand = mine, .target = home, .store = true};
    // Turned round: what was the last receive is the first send.
    turn at = turn_at(p.size, step_count(p) - 1 - s);
    at.sends = !at.sends;
    rank_t const partner = detail::swing_core(p.size).partner(p.rank, at.level);
    if (s == 0) return {.to = only(partner), .operand = mine, .target = home, .store = true};
    region const chunks =
        blocks(place::output, at.sends ? p.rank : partner, p.size, at.level + 1, at.parity);
    if (at.sends) return {.to = only(partner), .operand = chunks};
    return {.from = only(partner), .target = chunks, .store = true};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) { return one_way(n); }
};

}  // namespace collx::inline abi_1::algo
