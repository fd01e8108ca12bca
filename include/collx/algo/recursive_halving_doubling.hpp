// SPDX-License-Identifier: Apache-2.0
// Recursive halving and doubling: partners exchange halves instead of everything, so that the
// logarithmic number of rounds costs no more bytes than a ring. The choice for medium and large
// vectors on a network whose distances do not matter.
//
//   Rabenseifner: Optimization of collective reduction operations (2004).
//   van de Geijn et al.: scatter followed by all-gather as a broadcast of long vectors (1994).
//
// Cost for n = 2^L ranks and M bytes, sent by the busiest rank:
//   all_reduce      2L rounds, 2(n-1)/n M bytes
//   reduce_scatter   L rounds,  (n-1)/n M
//   all_gather       L rounds,  (n-1)/n M
//   broadcast     2L-1 rounds, 2(n-1)/n M
//   reduce          2L rounds, (3/2 - 1/n) M     (halving, then a gather to the root); scratch M
// For any other n, with 2^L < n, the surplus ranks (detail::power_of_two_core) cost two rounds more,
// in reduce_scatter and all_gather one if n <= 3/2 2^L, in broadcast and reduce one for some roots. The
// busiest rank sends (3 - 2/2^L) M in all_reduce and M in reduce_scatter; for all_gather see
// recursive_doubling; in broadcast and reduce as much as of 2^L ranks. all_reduce and reduce combine in rank
// order; reduce_scatter does not, so its operator must commute.
#pragma once

#include "collx/algo/power_of_two.hpp"
#include "collx/algo/recursive_doubling.hpp"
#include "collx/algo/recursive_halving_doubling/broadcast.hpp"
#include "collx/algo/recursive_halving_doubling/reduce.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// Halving: at level i a rank splits its run with the partner of that level. In a power_of_two_core they
// lie at distance 2^i, from near to far, so that the blocks of ranks which meet are neighbours and rank
// order is kept. Doubling: the same levels backwards. The run a rank receives while doubling at level i
// is the one it gave away while halving at level i, to the same partner: by then it has been read, so
// nothing is sent as a copy.
//
// Any other `Core` must give partners an index that agrees in the bits below the level and differs in
// that bit.
template <class Core>
struct halving_and_doubling {
  using contract = contract::all_reduce;
  static constexpr reproducibility reproduces = reproducibility::any_transport;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return Core(n).size(); }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    if (p.size == 1) return 1;
    Core const core(p.size);
    return core.is_outside(p.rank) ? 2 : 4 * core.levels - 1 + 2 * core.has_guest(p.rank);
  }

  // Two turns per level: 0 .. 2L-1 halve, the last of them begins the doubling of 2L-1 .. 4L-2.
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    Core const core(p.size);
    region const whole_input{place::input, 0, core.size()};
    region const whole_output{place::output, 0, core.size()};
    if (p.size == 1) return {.operand = whole_input, .target = whole_output, .store = true};
    if (core.is_outside(p.rank)) return detail::guest_step(s, p.rank - 1, whole_input, whole_output);
    bool const guest = core.has_guest(p.rank);
    if (guest && s == 0)
      return {.from = {p.rank, 1, 2},
              .operand = whole_input,
              .target = whole_output,
              .reduce = true,
              .store = true};
    std::int32_t const turn = s - guest;
    if (turn < 2 * core.levels) return halve(core, p.rank, turn, guest);
    if (turn < 4 * core.levels - 1) return double_up(core, p.rank, turn - 2 * core.levels);
    return {.to = only(p.rank + 1), .operand = whole_output};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    Core const core(n);
    std::int32_t const fold = core.surplus > 0;
    std::int32_t const halving_and_doubling = 2 * (core.size() - 1);
    return {2 * core.levels + 2 * fold, 2 * core.levels + fold, halving_and_doubling + fold * core.size()};
  }

 private:
  // Even turns give away the partner's half of the run, odd turns combine this rank's half. The last
  // result goes to the partner at once: one pass reads two runs and can write both outputs.
  static constexpr COLLX_HD primitive halve(Core const& core, rank_t rank, std::int32_t turn,
                                            bool partial_in_output) {
    std::int32_t const level = turn / 2;
    rank_t const index = core.index_of(rank);
    rank_t const partner = core.partner(rank, level);
    place const partial = level > 0 || partial_in_output ? place::output : place::input;
    if (turn % 2 == 0)
      return {.to = only(partner),
              .operand = halved_run(partial, core.size(), core.index_of(partner), level + 1)};
    return {.from = in_rank_order(rank, partner),
            .to = level == core.levels - 1 ? only(partner) : nobody(),
            .operand = halved_run(partial, core.size(), index, level + 1),
            .target = halved_run(place::output, core.size(), index, level + 1),
            .reduce = true,
            .store = true,
            .push = level == core.levels - 1,
            .complete = level == core.levels - 1};
  }

  // Even turns take the other half of the run, odd turns send the doubled run at the next level down.
  static constexpr COLLX_HD primitive double_up(Core const& core, rank_t rank, std::int32_t turn) {
    std::int32_t const level = core.levels - 1 - (turn + 1) / 2;
    rank_t const partner = core.partner(rank, level);
    if (turn % 2 == 1)
      return {.to = only(partner),
              .operand = halved_run(place::output, core.size(), core.index_of(rank), level + 1)};
    return {.from = only(partner),
            .target = halved_run(place::output, core.size(), core.index_of(partner), level + 1),
            .store = true};
  }
};

}  // namespace detail

struct recursive_halving_doubling {
  static constexpr char const* name = "recursive_halving_doubling";

  struct all_reduce;
  struct reduce_scatter;
  using all_gather = recursive_doubling::all_gather;  // the doubling half, on its own
  using broadcast = detail::halving_broadcast;
  using reduce = detail::halving_reduce;
};

struct recursive_halving_doubling::all_reduce : detail::halving_and_doubling<detail::power_of_two_core> {
  static constexpr bool keeps_rank_order = true;
};

// Halving from far to near: what a rank keeps at every level is the run of the block of ranks it
// belongs to, and at the end its own chunk. The contributions that meet come from ranks far apart,
// hence not in rank order. Partial results live in scratch, since the output holds one chunk only.
struct recursive_halving_doubling::reduce_scatter {
  using contract = contract::reduce_scatter;
  static constexpr reproducibility reproduces = reproducibility::any_transport;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  // A rank without a guest keeps half a vector at most; one with a guest begins with a whole one.
  static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t n) {
    return !detail::is_power_of_two(n) ? n : n > 2 ? n / 2 : 0;
  }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    if (p.size == 1) return 1;
    detail::power_of_two_core const core(p.size);
    return core.is_outside(p.rank) ? 2 : 2 * core.levels + 3 * core.has_guest(p.rank);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    detail::power_of_two_core const core(p.size);
    region const whole{place::input, 0, p.size};
    region const mine{place::output, p.rank, 1};
    if (p.size == 1) return {.operand = whole, .target = mine, .store = true};
    if (core.is_outside(p.rank)) return detail::guest_step(s, p.rank - 1, whole, mine);
    if (!core.has_guest(p.rank)) return halve(p, core, s);
    if (s == 0)
      return {.from = {p.rank, 1, 2},
              .operand = whole,
              .target = {place::scratch, 0, p.size},
              .reduce = true,
              .store = true};
    if (s <= 2 * core.levels) return halve(p, core, s - 1);
    if (s == 2 * core.levels + 1) return {.to = only(p.rank + 1), .operand = {place::scratch, p.rank + 1, 1}};
    return {.operand = {place::scratch, p.rank, 1}, .target = mine, .store = true};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    detail::power_of_two_core const core(n);
    if (core.surplus == 0) return {core.levels, core.levels, n - 1};
    return {core.levels + core.fold_rounds(), core.levels + 1, n};
  }

 private:
  static constexpr COLLX_HD region in_scratch(region chunks, rank_t n) {
    return {place::scratch, detail::is_power_of_two(n) ? chunks.first % (n / 2) : chunks.first, chunks.count};
  }

  // Even turns give away the run of the partner's block, odd turns combine that of this rank's.
  static constexpr COLLX_HD primitive halve(problem p, detail::power_of_two_core core, std::int32_t turn) {
    std::int32_t const level = core.levels - 1 - turn / 2;
    rank_t const partner = core.partner(p.rank, level);
    bool const gives = turn % 2 == 0;
    region const chunks = core.chunks_of_block(place::input, gives ? partner : p.rank, level);
    bool const untouched = turn < 2 && !core.has_guest(p.rank);
    region const partial = untouched ? chunks : in_scratch(chunks, p.size);
    if (gives) return {.to = only(partner), .operand = partial};
    region const result{place::output, p.rank, 1};
    region const target = level == 0 && chunks.count == 1 ? result : in_scratch(chunks, p.size);
    return {.from = in_rank_order(p.rank, partner),
            .operand = partial,
            .target = target,
            .reduce = true,
            .store = true,
            .complete = level == 0};
  }
};

}  // namespace collx::inline abi_1::algo
