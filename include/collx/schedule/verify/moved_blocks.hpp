// SPDX-License-Identifier: Apache-2.0
// What is proved of a schedule that states `moves_blocks`, beside all that is proved of every schedule.
#pragma once

#include "collx/schedule/verify/subject.hpp"
#include "collx/schedule/verify/table.hpp"

namespace collx::inline abi_1::detail {

// The steps of one rank after the other. Each looks up who used an entry last, so that nothing is cleared.
class moved_blocks {
 public:
  constexpr explicit moved_blocks(subject const& s)
      : s_(s), sent_to_(s.size), taken_from_(s.size), stored_(s.chunks) {}

  // Whether a step does no more than to send blocks of the input, or to store what comes, or the rank's own
  // blocks, in the output; no peer and no block twice. That it is the right block, the symbolic run finds.
  [[nodiscard]] constexpr bool moves(rank_t rank, primitive const& p) {
    if (p.reduce || p.push || !p.from.along.is_whole() || !p.to.along.is_whole()) return false;
    if (foreign_count(p.to, rank, s_.size) > 0)
      return p.from.empty() && !p.store && is_block(p.operand, place::input) && all_new(sent_to_, p.to, rank);
    if (p.from.empty() && !p.store) return true;
    bool const has_own = p.from.empty() || p.from.position(rank, s_.size) >= 0;
    return p.store && is_block(p.target, place::output) && (!has_own || is_block(p.operand, place::input)) &&
           all_new(taken_from_, p.from, rank) && stores_apart(p, rank);
  }

 private:
  [[nodiscard]] static constexpr bool is_block(region const& r, place where) {
    return r.where == where && r.count == 1;
  }
  [[nodiscard]] static constexpr bool is_new(table<rank_t>& used_by, std::int32_t entry, rank_t rank) {
    if (used_by[entry] == rank + 1) return false;
    used_by[entry] = rank + 1;
    return true;
  }
  [[nodiscard]] constexpr bool all_new(table<rank_t>& used_by, peer_set const& set, rank_t rank) const {
    for (std::int32_t k = 0; k < set.count; ++k) {
      rank_t const peer = set.member(k, s_.size);
      if (peer != rank && !is_new(used_by, peer, rank)) return false;
    }
    return true;
  }
  [[nodiscard]] constexpr bool stores_apart(primitive const& p, rank_t rank) {
    for (std::int32_t k = 0; k < (p.from.empty() ? 1 : p.from.count); ++k)
      if (!is_new(stored_, p.target.first_for(k, s_.chunks), rank)) return false;
    return true;
  }

  subject const& s_;
  table<rank_t> sent_to_, taken_from_, stored_;  // the last rank that did so, counted from 1
};

// Of a schedule whose steps are well formed.
[[nodiscard]] constexpr bool only_moves_blocks(subject const& s) {
  if (s.chunks != s.blocks || s.scratch != 0) return false;
  moved_blocks seen(s);
  for (rank_t rank = 0; rank < s.size; ++rank)
    for (std::int32_t i = 0, n = s.step_count(s.of(rank)); i < n; ++i)
      if (!seen.moves(rank, s.step(s.of(rank), i))) return false;
  return true;
}

}  // namespace collx::inline abi_1::detail
