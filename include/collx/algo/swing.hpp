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
// For any other n, with 2^L < n, the last two cost a round and a message more, two rounds if the surplus
// n - 2^L is large (detail::swing_fold::rounds); the busiest rank sends M in reduce_scatter, which needs as
// much scratch, and in all_gather M more than a power of two, and the surplus blocks among those it passes
// on. The operator must commute.
//
// The paper's own way for an even n that is no power of two lets ranks meet round a ring of n and leaves out
// what would come twice. That keeps (n-1)/n M; but which blocks are left out is no sequence that a region can
// say, and would make of every message as many as it has blocks. An odd n it folds, too.
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

// The other way to let surplus ranks in: rank x < 2^L stands for rank x + 2^L too. Since the distances
// between the blocks that travel together divide 2^L, the block of a guest goes on where those of the core
// end: what was every k-th block of 2^L is every k-th of n.
struct swing_fold {
  std::int32_t levels;
  rank_t surplus;

  explicit constexpr COLLX_HD swing_fold(rank_t n) : levels(floor_log2(n)), surplus(n - (1 << levels)) {}

  [[nodiscard]] constexpr COLLX_HD rank_t size() const { return 1 << levels; }
  [[nodiscard]] constexpr COLLX_HD bool is_outside(rank_t rank) const { return rank >= size(); }
  [[nodiscard]] constexpr COLLX_HD bool has_guest(rank_t rank) const { return rank < surplus; }

  // A message per level; the way in; and the way out, if a chain through all levels that begins at one guest
  // can end at another. With d = ceil(2^L / 3) it leads from an even rank x to x - d, from an odd one to x +
  // d, round the core. The least surplus with room for both ends is that of the smallest even x >= d.
  [[nodiscard]] constexpr COLLX_HD std::int32_t rounds() const {
    if (surplus == 0) return levels;
    return levels + 1 + (surplus > 2 * ((size() + 5) / 6));
  }
};

}  // namespace detail

struct swing {
  static constexpr char const* name = "swing";

  struct all_reduce;
  struct reduce_scatter;
  struct all_gather;

 private:
  // The even or odd blocks among those that core rank `rank` has after halving at the levels below `level` >
  // 0. They lie 2^(level+1) apart; at the end there is the rank's own, and its guest's.
  static constexpr COLLX_HD region blocks(place where, rank_t rank, rank_t n, std::int32_t level,
                                          std::int32_t parity) {
    detail::swing_fold const fold(n);
    bool const own = level == fold.levels;
    std::int32_t const pitch = own ? fold.size() : 2 << level;
    rank_t const c = detail::swing_core(fold.size()).third();
    rank_t const other = rank % 2 == 0 ? rank + c : rank - c;
    std::int32_t const first = (own || rank % 2 == parity ? rank : other) & (pitch - 1);
    return {
        .where = where, .first = first, .count = (n - first + pitch - 1) / pitch, .run = 1, .pitch = pitch};
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
  static constexpr COLLX_HD std::int32_t messages(rank_t n) {
    detail::swing_fold const fold(n);
    return n == 1 ? 0 : 2 * fold.levels - 1 + (fold.surplus > 0);
  }
  static constexpr COLLX_HD primitive alone() {
    return {.operand = {place::input, 0, 1}, .target = {place::output, 0, 1}, .store = true};
  }
  static constexpr COLLX_HD turn turn_at(rank_t n, std::int32_t s) {
    std::int32_t const last = detail::floor_log2(n) - 1;
    if (s / 4 >= last) return {last, s - 4 * last == 0, 0};
    return {s / 4, s % 4 < 2, s % 2};
  }
};

struct swing::all_reduce : detail::halving_and_doubling<detail::swing_core> {
  // Every chunk has a tree of its own.
  static constexpr reproducibility reproduces = reproducibility::run_to_run;
};

// At every level a rank gives away the blocks that its partner goes on with, and combines the others.
// Partial results live in scratch: of a power of two those of the level-0 partner's half are never there, so
// every fourth even and every fourth odd block has a slot. Who has a guest begins with a whole vector there.
struct swing::reduce_scatter {
  using contract = contract::reduce_scatter;
  static constexpr reproducibility reproduces = reproducibility::run_to_run;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t n) {
    return !detail::is_power_of_two(n) ? n : n > 2 ? n / 2 : 0;
  }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    detail::swing_fold const fold(p.size);
    return fold.is_outside(p.rank) ? 2 : swing::step_count(p.size) + 3 * fold.has_guest(p.rank);
  }

  // With a guest: its vector is taken in before the levels, and its block handed out behind them.
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    detail::swing_fold const fold(p.size);
    region const whole{place::input, 0, p.size}, result{place::output, p.rank, 1};
    if (p.size == 1) return alone();
    if (fold.is_outside(p.rank)) return detail::guest_step(s, p.rank - fold.size(), whole, result);
    if (!fold.has_guest(p.rank)) return halve(p, s, false);
    rank_t const guest = p.rank + fold.size();
    std::int32_t const turn = s - 1 - swing::step_count(p.size);
    if (s == 0)
      return {.from = in_rank_order(p.rank, guest),
              .operand = whole,
              .target = {place::scratch, 0, p.size},
              .reduce = true,
              .store = true};
    if (turn < 0) return halve(p, s - 1, true);
    if (turn == 0) return {.to = only(guest), .operand = {place::scratch, guest, 1}};
    return {.operand = {place::scratch, p.rank, 1}, .target = result, .store = true};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    detail::swing_fold const fold(n);
    return {fold.rounds(), messages(n), fold.surplus > 0 ? n : n - 1};
  }

 private:
  static constexpr COLLX_HD primitive halve(problem p, std::int32_t s, bool has_guest) {
    turn const at = turn_at(p.size, s);
    detail::swing_core const core(detail::swing_fold(p.size).size());
    rank_t const partner = core.partner(p.rank, at.level);
    region const chunks = blocks(place::input, at.sends ? partner : p.rank, p.size, at.level + 1, at.parity);
    region const operand = at.level == 0 && !has_guest ? chunks : in_scratch(chunks, p.size);
    if (at.sends) return {.to = only(partner), .operand = operand};
    bool const last = at.level == core.levels - 1;
    region const result{place::output, p.rank, 1};
    return {.from = in_rank_order(p.rank, partner),
            .operand = operand,
            .target = last && !has_guest ? result : in_scratch(chunks, p.size),
            .reduce = true,
            .store = true,
            .complete = last};
  }

  static constexpr COLLX_HD region in_scratch(region chunks, rank_t n) {
    chunks.where = place::scratch;
    if (!detail::is_power_of_two(n)) return chunks;
    chunks.first = chunks.first / 4 + (chunks.first % 2 == 1 ? n / 4 : 0);
    chunks.pitch /= 4;
    return chunks;
  }
};

// The same levels backwards: a rank sends all it has to its partner. A guest's block is taken in first, and
// everything handed out last.
struct swing::all_gather {
  using contract = contract::all_gather;
  static constexpr known_counts counts = known_counts::agreed;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    detail::swing_fold const fold(p.size);
    return fold.is_outside(p.rank) ? 2 : swing::step_count(p.size) + 2 * fold.has_guest(p.rank);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    detail::swing_fold const fold(p.size);
    region const whole{place::output, 0, p.size}, mine{place::input, p.rank, 1};
    if (p.size == 1) return alone();
    if (fold.is_outside(p.rank)) return detail::guest_step(s, p.rank - fold.size(), mine, whole);
    std::int32_t const turns = swing::step_count(p.size);
    if (!fold.has_guest(p.rank)) return double_up(p, turns, s, mine);
    if (s == 0)
      return {.from = {p.rank, fold.size(), 2},
              .operand = mine,
              .target = {place::output, p.rank, 1, fold.size()},
              .store = true};
    if (s == turns + 1) return {.to = only(p.rank + fold.size()), .operand = whole};
    return double_up(p, turns, s - 1, {});
  }

  // What a rank sends depends on how many of its blocks are guests': no formula is shorter than to count.
  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    detail::swing_fold const fold(n);
    std::int64_t most = n - 1;
    for (rank_t rank = 0; rank < fold.surplus; ++rank) {
      std::int64_t const sent = sent_by(rank, n) + n;
      if (sent > most) most = sent;
    }
    return {fold.rounds(), messages(n), most};
  }

 private:
  // Turned round: what was the last receive is the first send. `mine`: if that is not in the output yet.
  static constexpr COLLX_HD primitive double_up(problem p, std::int32_t turns, std::int32_t s, region mine) {
    turn at = turn_at(p.size, turns - 1 - s);
    at.sends = !at.sends;
    detail::swing_core const core(detail::swing_fold(p.size).size());
    rank_t const partner = core.partner(p.rank, at.level);
    if (s == 0 && mine.count > 0)
      return {.to = only(partner), .operand = mine, .target = {place::output, p.rank, 1}, .store = true};
    region const chunks = blocks(place::output, at.sends ? p.rank : partner, p.size, at.level + 1, at.parity);
    if (at.sends) return {.to = only(partner), .operand = chunks};
    return {.from = only(partner), .target = chunks, .store = true};
  }

  // The chunks that a core rank sends to its partners.
  static constexpr COLLX_HD std::int64_t sent_by(rank_t rank, rank_t n) {
    std::int32_t const levels = detail::floor_log2(n);
    std::int64_t sent = blocks(place::output, rank, n, levels, 0).count;
    for (std::int32_t level = 1; level < levels; ++level)
      for (std::int32_t parity = 0; parity < 2; ++parity)
        sent += blocks(place::output, rank, n, level, parity).count;
    return sent;
  }
};

}  // namespace collx::inline abi_1::algo
