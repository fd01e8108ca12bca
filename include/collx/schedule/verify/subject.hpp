// SPDX-License-Identifier: Apache-2.0
// A schedule for one size and root behind function pointers, so that the symbolic run is compiled
// once and not once per schedule; and what can be said about one of its steps without running it.
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/schedule/verify/fault.hpp"

namespace collx::inline abi_1::detail {

struct subject {
  std::int32_t (*step_count)(problem);
  primitive (*step)(problem, std::int32_t);
  chunk_window (*input)(problem, std::int32_t);
  chunk_window (*output)(problem, std::int32_t);
  rank_t (*owner)(problem, std::int32_t, std::int32_t);
  rank_t size = 1;
  rank_t root = 0;
  std::int32_t chunks = 0;
  std::int32_t scratch = 0;
  std::int32_t depth = 0;
  bool supported = false;
  bool keeps_order = false;
  bool from_all = false;
  bool sharded = false;
  cost documented{};

  [[nodiscard]] constexpr problem of(rank_t rank) const { return {rank, size, root}; }

  [[nodiscard]] constexpr std::int32_t limit(place where) const {
    return where == place::scratch ? scratch : chunks;
  }

  // Chunks of one size class are equally long; others may differ, for remainders lie in the last
  // chunks of a block. Scratch is cut like the vector.
  [[nodiscard]] constexpr std::int32_t size_class(std::int32_t chunk) const {
    return sharded ? chunk % (chunks / size) : chunk;
  }
};

template <class S>
struct erased {
  static constexpr std::int32_t step_count(problem p) { return S::step_count(p); }
  static constexpr primitive step(problem p, std::int32_t index) { return S::step(p, index); }

  static constexpr subject of(rank_t size, rank_t root) {
    using contract = typename S::contract;
    bool const supported = size > 0 && S::supports(size);
    return {.step_count = &erased::step_count,
            .step = &erased::step,
            .input = &contract::input,
            .output = &contract::output,
            .owner = &contract::owner,
            .size = size,
            .root = root,
            .chunks = supported ? S::chunk_count(size) : 0,
            .scratch = supported ? scratch_chunks<S>(size) : 0,
            .depth = supported ? collx::depth<S>(size) : 0,
            .supported = supported,
            .keeps_order = keeps_rank_order<S>(),
            .from_all = contract::from_all,
            .sharded = contract::sharded,
            .documented = supported ? documented_cost<S>(size, root) : cost{}};
  }
};

// The place of `rank` in the set, or -1. Closed form where it can be: sets may have many members.
[[nodiscard]] constexpr std::int32_t position(peer_set const& set, rank_t rank, rank_t size) {
  if (set.count == 0) return -1;
  if (set.first == rank) return 0;
  if (set.stride == 1) {
    rank_t const k = rank > set.first ? rank - set.first : rank - set.first + size;
    return k < set.count ? k : -1;
  }
  for (std::int32_t k = 1; k < set.count; ++k)
    if (set.member(k, size) == rank) return k;
  return -1;
}

// The members of a set other than `rank` itself.
[[nodiscard]] constexpr std::int32_t foreign_count(peer_set const& set, rank_t rank, rank_t size) {
  return set.count - (position(set, rank, size) >= 0 ? 1 : 0);
}

[[nodiscard]] constexpr fault check_set(peer_set const& set, rank_t size) {
  if (set.count == 0) return fault::none;
  if (set.count < 0 || set.first < 0 || set.first >= size) return fault::peer_out_of_range;
  // first + k * stride comes back to first at k = size / gcd(size, stride).
  std::int32_t a = size;
  std::int32_t b = set.stride % size;
  while (b != 0) {
    std::int32_t const rest = a % b;
    a = b;
    b = rest;
  }
  return set.count > size / (a < 0 ? -a : a) ? fault::duplicate_peer : fault::none;
}

// Whether the runs of a region, one for each of `peers` peers, lie in a window of its buffer.
[[nodiscard]] constexpr bool in_window(subject const& s, region const& r, std::int32_t peers,
                                       chunk_window window) {
  if (r.count < 0) return false;
  if (r.count == 0) return true;
  for (std::int32_t k = 0; k < (r.per_peer == 0 ? 1 : peers); ++k) {
    std::int32_t const first = r.first_for(k, s.chunks);
    if (first < window.first || first + r.count > window.first + window.count) return false;
  }
  return true;
}

// The target says how long messages are, whether or not they are stored.
[[nodiscard]] constexpr fault check_target(subject const& s, rank_t rank, primitive const& p) {
  if (p.target.per_peer != 0 && (p.reduce || p.from.empty())) return fault::per_peer_misused;
  std::int32_t const limit = p.store ? s.limit(p.target.where) : s.chunks;
  if (!in_window(s, p.target, p.from.count, {0, limit})) return fault::region_out_of_range;
  bool const is_operand = p.reduce || p.from.empty() || position(p.from, rank, s.size) >= 0;
  if (is_operand && p.operand.count != p.target.count) return fault::count_mismatch;
  if (!p.store) return fault::none;
  if (p.target.where == place::input) return fault::stores_to_input;
  if (p.target.where == place::output &&
      !in_window(s, p.target, p.from.count, s.output(s.of(rank), s.chunks)))
    return fault::stores_outside_output;
  return fault::none;
}

[[nodiscard]] constexpr fault check_operand(subject const& s, rank_t rank, primitive const& p) {
  if (!p.from.empty() && position(p.from, rank, s.size) < 0) return fault::none;
  if (p.operand.per_peer != 0 && (!p.from.empty() || p.store)) return fault::per_peer_misused;
  if (!in_window(s, p.operand, p.to.count, {0, s.limit(p.operand.where)})) return fault::region_out_of_range;
  return fault::none;
}

// Everything that is wrong with step `p` of `rank` as such.
[[nodiscard]] constexpr fault check_step(subject const& s, rank_t rank, primitive const& p) {
  if (fault const f = check_set(p.from, s.size); f != fault::none) return f;
  if (fault const f = check_set(p.to, s.size); f != fault::none) return f;
  bool const has_self = position(p.from, rank, s.size) >= 0;
  if (p.reduce && p.from.empty()) return fault::reduces_nothing;
  if (p.reduce && !has_self) return fault::self_missing;
  bool const sends = foreign_count(p.to, rank, s.size) > 0;
  if (!p.reduce && sends && (p.from.count > 1 || has_self)) return fault::fan_in_sends;
  if (p.from.empty() && !sends && !p.store) return fault::none;
  if (p.store || !p.from.empty())
    if (fault const f = check_target(s, rank, p); f != fault::none) return f;
  return check_operand(s, rank, p);
}

}  // namespace collx::inline abi_1::detail
