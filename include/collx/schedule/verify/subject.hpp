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
  block_window (*input)(problem);
  block_window (*output)(problem);
  std::int32_t (*in_place_at)(problem);
  rank_t (*owner)(problem, std::int32_t);
  rank_t (*contributors)(problem);
  rank_t size = 1;
  rank_t inner = 1;
  rank_t root = 0;
  std::int32_t blocks = 1;
  std::int32_t chunks = 0;
  std::int32_t chunks_per_block = 0;
  std::int32_t scratch = 0;
  std::int32_t depth = 0;
  std::int32_t steps_max = 0;
  std::int64_t staged = -1;  // not stated
  bool supported = false;
  bool keeps_order = false;
  bool from_all = false;
  bool synchronizes = false;
  bool prefix = false;  // each rank combines the contributions of some ranks only
  bool cost_is_bound = false;
  bool moves_blocks = false;
  reproducibility level = reproducibility::none;
  known_counts counts = known_counts::equal;
  std::uint32_t emptied = 0;  // not 0: every block has another count, and some, by this seed, have none
  cost documented{};
  cost of_worst_root{};  // documented_cost(size), which executors and models go by

  [[nodiscard]] constexpr problem of(rank_t rank) const { return {rank, size, root, inner}; }

  [[nodiscard]] constexpr std::int32_t limit(place where) const {
    return where == place::scratch ? scratch : chunks;
  }

  // Chunks of one size class are equally long; others may differ, for remainders lie in the last
  // chunks of a block. Scratch is cut like the vector.
  [[nodiscard]] constexpr std::int32_t size_class(std::int32_t chunk) const {
    return emptied != 0 ? chunk : chunk % chunks_per_block;
  }

  // Whether a chunk has no elements, and its message is not sent: about one block in three.
  [[nodiscard]] constexpr bool is_empty(std::int32_t chunk) const {
    if (emptied == 0 || counts != known_counts::pairwise) return false;
    std::uint32_t const mixed =
        (static_cast<std::uint32_t>(chunk / chunks_per_block) ^ emptied) * 2654435761U;
    return (mixed >> 16) % 3 == 0;
  }

  // Where a chunk lies in a buffer, in chunks; -1 if it does not.
  [[nodiscard]] constexpr std::int32_t position(block_window const& window, std::int32_t chunk) const {
    std::int32_t const block = chunk / chunks_per_block;
    return window.holds(block) ? window.position(block) * chunks_per_block + chunk % chunks_per_block : -1;
  }

  // The i-th chunk of a buffer.
  [[nodiscard]] constexpr std::int32_t chunk_at(block_window const& window, std::int32_t i) const {
    return (window.first + i / chunks_per_block * window.stride) * chunks_per_block + i % chunks_per_block;
  }
};

template <class S>
struct erased {
  static constexpr std::int32_t step_count(problem p) { return S::step_count(p); }
  static constexpr primitive step(problem p, std::int32_t index) { return S::step(p, index); }

  static constexpr subject of(shape n, rank_t root) {
    using contract = typename S::contract;
    bool const supported = n.size > 0 && n.inner > 0 && collx::supports<S>(n);
    std::int32_t const blocks = contract::blocks(n.size);
    std::int32_t const chunks = supported ? collx::chunk_count<S>(n) : 0;
    return {.step_count = &erased::step_count,
            .step = &erased::step,
            .input = &contract::input,
            .output = &contract::output,
            .in_place_at = &contract::in_place_at,
            .owner = &contract::owner,
            .contributors = &contract::contributors,
            .size = n.size,
            .inner = n.inner,
            .root = root,
            .blocks = blocks,
            .chunks = chunks,
            .chunks_per_block = supported ? chunks / blocks : 0,
            .scratch = supported ? scratch_chunks<S>(n) : 0,
            .depth = supported ? collx::depth<S>(n) : 0,
            .steps_max = collx::steps_max<S>(),
            .staged = supported && states_staged_chunks<S>() ? staged_chunks_bound<S>(n) : -1,
            .supported = supported,
            .keeps_order = keeps_rank_order<S>(),
            .from_all = contract::from_all,
            .synchronizes = contract::synchronizes,
            .prefix = contract::contributors({0, 2, 0}) != 2,
            .cost_is_bound = collx::cost_is_bound<S>(),
            .moves_blocks = collx::moves_blocks<S>(),
            .level = level_of<S>(),
            .counts = counts_for<S>(),
            .documented = supported ? collx::documented_cost<S>(n, root) : cost{},
            .of_worst_root = supported ? collx::documented_cost<S>(n) : cost{}};
  }
};

// The members of a set other than `rank` itself.
[[nodiscard]] constexpr std::int32_t foreign_count(peer_set const& set, rank_t rank, rank_t size) {
  return set.count - (set.position(rank, size) >= 0 ? 1 : 0);
}

[[nodiscard]] constexpr fault check_set(peer_set const& set, rank_t size) {
  if (set.count == 0) return fault::none;
  rank_t limit = size;
  if (axis const& a = set.along; !a.is_whole()) {
    std::int64_t const last = a.base + std::int64_t{a.size - 1} * a.pitch;
    if (a.size < 0 || a.pitch < 1 || a.base < 0 || last >= size) return fault::peer_out_of_range;
    limit = a.size;
  }
  if (set.count < 0 || set.first < 0 || set.first >= limit) return fault::peer_out_of_range;
  // first + k * stride comes back to first at k = limit / gcd(limit, stride).
  std::int32_t a = limit;
  std::int32_t b = set.stride % limit;
  while (b != 0) {
    std::int32_t const rest = a % b;
    a = b;
    b = rest;
  }
  return set.count > limit / (a < 0 ? -a : a) ? fault::duplicate_peer : fault::none;
}

// Whether a region is well formed, and its chunks for each of `peers` peers are among `limit`.
[[nodiscard]] constexpr bool in_range(subject const& s, region const& r, std::int32_t peers,
                                      std::int32_t limit) {
  if (r.count < 0 || r.run < 0 || r.modulus < 0) return false;
  if (r.wraps && (r.first < 0 || r.first >= (r.modulus == 0 ? s.chunks : r.modulus))) return false;
  for (std::int32_t k = 0; k < (r.per_peer == 0 ? 1 : peers); ++k) {
    std::int32_t const first = r.first_for(k, s.chunks);
    // Within a run chunks ascend: its ends bound it.
    std::int32_t const step = r.is_one_run() ? r.count : 1;
    for (std::int32_t i = 0; i < r.count; i += step)
      if (r.chunk(first, i, s.chunks) < 0 || r.chunk(first, i + step - 1, s.chunks) >= limit) return false;
  }
  return true;
}

// Whether every chunk of a region, for each of `peers` peers, is one that a buffer holds.
[[nodiscard]] constexpr bool in_window(subject const& s, region const& r, std::int32_t peers,
                                       block_window const& window) {
  for (std::int32_t k = 0; k < (r.per_peer == 0 ? 1 : peers); ++k)
    for (std::int32_t i = 0, first = r.first_for(k, s.chunks); i < r.count; ++i)
      if (s.position(window, r.chunk(first, i, s.chunks)) < 0) return false;
  return true;
}

// The target says how long messages are, whether or not they are stored.
[[nodiscard]] constexpr fault check_target(subject const& s, rank_t rank, primitive const& p) {
  if (p.target.per_peer != 0 && (p.reduce || p.from.empty())) return fault::per_peer_misused;
  std::int32_t const limit = p.store ? s.limit(p.target.where) : s.chunks;
  if (!in_range(s, p.target, p.from.count, limit)) return fault::region_out_of_range;
  bool const is_operand = p.from.empty() || p.from.position(rank, s.size) >= 0;
  if (is_operand && p.operand.count != p.target.count) return fault::count_mismatch;
  if (!p.store) return fault::none;
  if (p.target.where == place::input) return fault::stores_to_input;
  if (p.target.where == place::output &&
      !in_window(s, p.target, p.from.count, s.output(s.of(rank))))
    return fault::stores_outside_output;
  return fault::none;
}

[[nodiscard]] constexpr fault check_operand(subject const& s, rank_t rank, primitive const& p) {
  if (!p.from.empty() && p.from.position(rank, s.size) < 0) return fault::none;
  if (p.operand.per_peer != 0 && (!p.from.empty() || p.store)) return fault::per_peer_misused;
  if (!in_range(s, p.operand, p.to.count, s.limit(p.operand.where))) return fault::region_out_of_range;
  return fault::none;
}

// Where blocks have counts that only their sender and receiver know, a step handles one block per message,
// from its owner to a rank whose output it belongs to. What it sends is its own input.
[[nodiscard]] constexpr fault check_pairwise(subject const& s, rank_t rank, primitive const& p) {
  auto const knows = [&](rank_t r, std::int32_t chunk) {
    return s.position(s.input(s.of(r)), chunk) >= 0 || s.position(s.output(s.of(r)), chunk) >= 0;
  };
  if (!p.from.empty() && (p.target.count != 1 || foreign_count(p.to, rank, s.size) > 0))
    return fault::not_pairwise;
  for (std::int32_t k = 0; k < p.from.count; ++k)
    if (!knows(p.from.member(k, s.size), p.target.first_for(k, s.chunks))) return fault::not_pairwise;
  for (std::int32_t k = 0; k < p.to.count; ++k)
    if (p.operand.count != 1 || !knows(p.to.member(k, s.size), p.operand.first_for(k, s.chunks)))
      return fault::not_pairwise;
  return fault::none;
}

// Everything that is wrong with step `p` of `rank` as such.
[[nodiscard]] constexpr fault check_step(subject const& s, rank_t rank, primitive const& p) {
  if (fault const f = check_set(p.from, s.size); f != fault::none) return f;
  if (fault const f = check_set(p.to, s.size); f != fault::none) return f;
  bool const has_self = p.from.position(rank, s.size) >= 0;
  if (p.reduce && (!s.from_all || p.from.count < (s.size > 1 ? 2 : 1))) return fault::reduces_nothing;
  if (s.emptied != 0 && s.counts == known_counts::pairwise)
    if (fault const f = check_pairwise(s, rank, p); f != fault::none) return f;
  bool const sends = foreign_count(p.to, rank, s.size) > 0;
  if (!p.reduce && sends && (p.from.count > 1 || has_self)) return fault::fan_in_sends;
  if (p.from.empty() && !sends && !p.store) return fault::none;
  if (p.store || !p.from.empty())
    if (fault const f = check_target(s, rank, p); f != fault::none) return f;
  return check_operand(s, rank, p);
}

}  // namespace collx::inline abi_1::detail
