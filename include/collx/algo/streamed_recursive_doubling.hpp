// SPDX-License-Identifier: Apache-2.0
// Streamed recursive doubling: partners at distance 1, 2, 4, ... as in recursive doubling, but what
// arrives is passed on to the next partner at once, as a message of its own, instead of waiting until all
// from this partner is there. Links to several partners are busy at the same time; the last of the log2 n
// rounds, which moves half of all bytes, is under way while the others are. The choice for an all_gather
// of medium vectors where a message costs little and links are many.
//
// Cost for n = 2^L ranks and M bytes (the whole vector), sent by the busiest rank:
//   all_gather  L rounds, (n-1)/n M bytes in L (L+1) / 2 messages
// For any other n, rounds and bytes are those of recursive_doubling, in L+1 messages more.
#pragma once

#include "collx/algo/power_of_two.hpp"
#include "collx/algo/recursive_doubling.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct streamed_recursive_doubling {
  static constexpr char const* name = "streamed_recursive_doubling";

  struct all_gather;
};

// To the partner of level i go i+1 messages: the chunks of this rank's block of 2^(i-1) core ranks, which
// are there when level i-1 begins, and then the i messages of level i-1, one by one as they come. They hold
// 2^(i-1), 2^(i-2), ..., 2, 1, 1 core ranks' chunks. A guest is served like a partner of level L.
struct streamed_recursive_doubling::all_gather {
  using contract = contract::all_gather;
  static constexpr known_counts counts = known_counts::agreed;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  // All messages of a level are sent before the first of them is taken.
  static constexpr COLLX_HD std::int32_t depth(rank_t n) {
    std::int32_t const levels = detail::floor_log2(n);
    return levels > 2 ? levels : 2;
  }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    detail::power_of_two_core const core(p.size);
    if (core.is_outside(p.rank)) return core.levels + 2;
    return core.levels == 0 ? 1 : begin_of(core.levels) + (core.has_guest(p.rank) ? 1 : -1);
  }

  // Step 0 serves the partner of level 0. Then level i is a send to the next partner, where there is one, and
  // i+1 receives. A guest's chunk is taken before all that.
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    detail::power_of_two_core const core(p.size);
    if (core.is_outside(p.rank)) return outside(p, core, s);
    region const mine{place::input, p.rank, 1};
    bool const guest = core.has_guest(p.rank);
    if (guest && s-- == 0)
      return {
          .from = {p.rank, 1, 2}, .operand = mine, .target = {place::output, p.rank, 1, 1}, .store = true};
    if (s == 0 && !guest)
      return {.to = next(p, core, 0), .operand = mine, .target = {place::output, p.rank, 1}, .store = true};
    if (s == 0) return {.to = next(p, core, 0), .operand = core.chunks_of_block(place::output, p.rank, 0)};
    std::int32_t level = 0;
    while (begin_of(level + 1) <= s) ++level;
    std::int32_t const turn = s - begin_of(level) + (level == core.levels - 1 && !guest);
    if (turn == 0)
      return {.to = next(p, core, level + 1), .operand = core.chunks_of_block(place::output, p.rank, level)};
    rank_t const partner = core.partner(p.rank, level);
    return {.from = only(partner),
            .to = next(p, core, level + 1),
            .target = message(core, partner, level, turn - 1),
            .store = true};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    detail::power_of_two_core const core(n);
    cost const whole = recursive_doubling::all_gather::documented_cost(n);
    std::int32_t const to_guest = core.surplus > 0 ? core.levels + 1 : 0;
    return {whole.rounds, core.levels * (core.levels + 1) / 2 + to_guest, whole.chunks};
  }

 private:
  // The step with which a level begins, a guest's first message not counted.
  static constexpr COLLX_HD std::int32_t begin_of(std::int32_t level) { return 1 + level * (level + 3) / 2; }

  static constexpr COLLX_HD peer_set next(problem p, detail::power_of_two_core core, std::int32_t level) {
    if (level < core.levels) return only(core.partner(p.rank, level));
    return core.has_guest(p.rank) ? only(p.rank + 1) : nobody();
  }

  // What the index-th message of a level holds: it set out `index` levels before, at a core rank whose number
  // differs from the sender's in as many bits.
  static constexpr COLLX_HD region message(detail::power_of_two_core core, rank_t sender, std::int32_t level,
                                           std::int32_t index) {
    std::int32_t const set_out = level - index;
    rank_t const origin = core.index_of(sender) ^ ((1 << level) - (1 << set_out));
    return core.chunks_of_block(place::output, core.rank_of(origin), set_out > 0 ? set_out - 1 : 0);
  }

  static constexpr COLLX_HD primitive outside(problem p, detail::power_of_two_core core, std::int32_t s) {
    if (s == 0) return {.to = only(p.rank - 1), .operand = {place::input, p.rank, 1}};
    return {.from = only(p.rank - 1), .target = message(core, p.rank - 1, core.levels, s - 1), .store = true};
  }
};

}  // namespace collx::inline abi_1::algo
