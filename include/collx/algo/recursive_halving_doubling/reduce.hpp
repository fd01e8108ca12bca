// SPDX-License-Identifier: Apache-2.0
// Reduce by halving, then gathering: a part of algo/recursive_halving_doubling.hpp, which says what it costs.
#pragma once

#include "collx/algo/power_of_two.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// A power_of_two_core in which the root stands for its pair, be it the even or the odd one.
struct core_led_by_root : power_of_two_core {
  rank_t root;

  constexpr COLLX_HD core_led_by_root(rank_t n, rank_t root_) : power_of_two_core(n), root(root_) {}

  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): another one leads the root's pair.
  [[nodiscard]] constexpr COLLX_HD bool is_outside(rank_t rank) const {
    return rank < 2 * surplus && rank != leader(rank);
  }
  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): as above.
  [[nodiscard]] constexpr COLLX_HD bool has_guest(rank_t rank) const {
    return rank < 2 * surplus && rank == leader(rank);
  }
  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): as above.
  [[nodiscard]] constexpr COLLX_HD rank_t rank_of(rank_t index) const {
    return index < surplus ? leader(2 * index) : index + surplus;
  }
  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): as above.
  [[nodiscard]] constexpr COLLX_HD rank_t partner(rank_t rank, std::int32_t level) const {
    return rank_of(index_of(rank) ^ (1 << level));
  }

 private:
  [[nodiscard]] constexpr COLLX_HD rank_t leader(rank_t rank) const {
    return rank / 2 == root / 2 ? root : rank - rank % 2;
  }
};

// Halving as in all_reduce, from near to far, so that neighbours meet and rank order is kept. Then core ranks
// whose index differs from the root's in a bit hand their run to the partner of that level, the highest level
// first; a run comes back to whom half of it was given away by, to the same partner: by then it has been
// read. Only the root has an output, so the others keep their runs in scratch, every chunk in the slot of its
// number.
struct halving_reduce {
  using contract = collx::contract::reduce;
  static constexpr reproducibility reproduces = reproducibility::any_transport;
  static constexpr bool keeps_rank_order = true;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return power_of_two_core(n).size(); }
  // Of two ranks one gives both halves away as they come.
  static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t n) {
    return n > 2 ? power_of_two_core(n).size() : 0;
  }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    member const at(p);
    if (p.size == 1 || at.core.is_outside(p.rank)) return 1;
    return at.guest + 2 * at.core.levels + at.receives() + (at.gives_at >= 0 && at.receives() > 0);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    member const at(p);
    region const whole{place::input, 0, at.core.size()};
    if (p.size == 1) return {.operand = whole, .target = {place::output, 0, 1}, .store = true};
    if (at.core.is_outside(p.rank)) return {.to = only(p.rank ^ 1), .operand = whole};
    if (at.guest && s == 0)
      return {.from = in_rank_order(p.rank, p.rank ^ 1),
              .operand = whole,
              .target = {at.held, 0, at.core.size()},
              .reduce = true,
              .store = true};
    std::int32_t const turn = s - at.guest;
    return turn < 2 * at.core.levels ? at.halve(turn) : at.gather(turn - 2 * at.core.levels);
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) { return documented_cost(n, 0); }
  // The longest chain leads from the root to who differs from it in every bit, and back; a guest of the root
  // makes it longer by one. Number 1 gives everything but its chunk away, and half of the vector at the end.
  static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
    core_led_by_root const core(n, root);
    if (n == 1) return {};
    return {2 * core.levels + core.has_guest(root), core.levels + 1, core.size() - 1 + core.size() / 2};
  }

 private:
  // A core rank: where its partial results lie, and at which level it hands its run on (-1: the root).
  struct member {
    core_led_by_root core;
    rank_t rank, index;
    place held;
    bool guest;
    std::int32_t gives_at;

    explicit constexpr COLLX_HD member(problem p)
        : core(p.size, p.root),
          rank(p.rank),
          index(core.index_of(p.rank)),
          held(p.rank == p.root ? place::output : place::scratch),
          guest(core.has_guest(p.rank)),
          gives_at(index == core.index_of(p.root) ? -1 : floor_log2(index ^ core.index_of(p.root))) {}

    // The levels from the highest down at which a run comes in.
    [[nodiscard]] constexpr COLLX_HD std::int32_t receives() const { return core.levels - 1 - gives_at; }

    // Even turns give away the partner's half of the run, odd turns combine this rank's half. The last result
    // goes on at once where nothing is to be gathered before.
    [[nodiscard]] constexpr COLLX_HD primitive halve(std::int32_t turn) const {
      std::int32_t const level = turn / 2;
      rank_t const partner = core.partner(rank, level);
      bool const last = level == core.levels - 1;
      bool const gives = last && gives_at == level;
      place const partial = level > 0 || guest ? held : place::input;
      if (turn % 2 == 0) return {.to = only(partner), .operand = half_of(partial, partner, level)};
      return {.from = in_rank_order(rank, partner),
              .to = gives ? only(partner) : nobody(),
              .operand = half_of(partial, rank, level),
              .target = half_of(held, rank, level),
              .reduce = true,
              .store = !gives,
              .complete = last};
    }

    [[nodiscard]] constexpr COLLX_HD primitive gather(std::int32_t turn) const {
      std::int32_t const level = core.levels - 1 - turn;
      rank_t const partner = core.partner(rank, level);
      if (turn == receives()) return {.to = only(partner), .operand = half_of(held, rank, level)};
      return {.from = only(partner), .target = half_of(held, partner, level), .store = true};
    }

   private:
    // The half of the run of level `level` that `who` goes on with.
    [[nodiscard]] constexpr COLLX_HD region half_of(place where, rank_t who, std::int32_t level) const {
      return halved_run(where, core.size(), core.index_of(who), level + 1);
    }
  };
};

}  // namespace detail

}  // namespace collx::inline abi_1::algo
