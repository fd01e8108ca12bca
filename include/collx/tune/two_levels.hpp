// SPDX-License-Identifier: Apache-2.0
// What of a schedule's messages stays inside a group of near ranks (shape::inner: those of a host), and what
// goes from group to group, so that the cost model can price the two apart.
#pragma once

#include <new>

#include "collx/tune/cost_model.hpp"
#include "collx/tune/walk.hpp"

namespace collx::inline abi_1::tune {

// The two kinds of messages, each as cost_model.hpp counts: rounds are those of one chain, the one with the
// most messages between groups; messages are those of the rank that sends most of the kind. Near blocks are
// those of the rank that sends most; far ones those of the group that does, whose ranks share one way out.
// Where ranks have no groups everything is far.
// The links say how long bytes are on their way where every byte is a message: a chain passes a vector on
// from rank to rank, and one rank gets those of all others one after the other. Nothing, where it was not
// found out.
struct level_factors {
  factors near, far;
  link_use near_links, far_links;
};

// A model, and whether its links are to be counted: memory that is read in place has none.
struct level_model {
  log_gp model;
  bool counts_links = false;

  [[nodiscard]] constexpr double operator()(factors f, link_use const& links, std::size_t block_bytes,
                                            double fragments) const {
    // Fragments of a long vector follow each other: only the first has to wait for all there is before it.
    if (counts_links && links.longest > 0)
      f.sent_blocks = links.busiest + (links.longest - links.busiest) / fragments;
    return model(f, block_bytes);
  }
};

struct level_models {
  level_model near, far;

  [[nodiscard]] constexpr double operator()(level_factors const& f, std::size_t block_bytes,
                                            double fragments = 1) const {
    return near(f.near, f.near_links, block_bytes, fragments) +
           far(f.far, f.far_links, block_bytes, fragments);
  }
};

namespace detail {

// What one rank sends, of each kind.
struct sent_by_rank {
  double near_messages = 0, far_messages = 0, near_chunks = 0, far_chunks = 0;

  sent_by_rank(walked_schedule const& s, rank_t rank) {
    for (std::int32_t i = 0; i < s.step_count(s.of(rank)); ++i) {
      primitive const step = s.step(s.of(rank), i);
      double const chunks = step.from.empty() ? step.operand.count : step.target.count;
      for (std::int32_t k = 0; k < step.to.count; ++k) {
        rank_t const peer = step.to.member(k, s.ranks.size);
        if (peer == rank) continue;
        (s.is_far(rank, peer) ? far_messages : near_messages) += 1;
        (s.is_far(rank, peer) ? far_chunks : near_chunks) += chunks;
      }
    }
  }
};

// Of more ranks, and where there is no memory to find out, every round is taken to be far, and links are not
// counted: to walk a ring of that many takes longer than a choice may.
COLLX_COLD inline void walk(walked_schedule const& s, cost const& documented, double blocks_per_chunk,
                            level_factors& f) {
  constexpr rank_t walked_most = 128;
  f.far.rounds = documented.rounds;
  if (s.ranks.size > walked_most) return;
  try {
    chain_walk all(s, documented.messages);
    all.run();
    f.near.rounds = all.longest.near;
    f.far.rounds = all.longest.far;
    f.near_links = {all.near.busiest * blocks_per_chunk, all.near.longest * blocks_per_chunk};
    f.far_links = {all.far.busiest * blocks_per_chunk, all.far.longest * blocks_per_chunk};
  } catch (std::bad_alloc const&) {
    f.far.rounds = documented.rounds;  // as for many ranks
  }
}

COLLX_COLD inline void count_messages(walked_schedule const& s, double blocks_per_chunk, level_factors& f) {
  rank_t const inner = s.group, groups = s.ranks.size / inner;
  for (rank_t const group : {rank_t{0}, groups / 2, groups - 1}) {
    double out = 0;
    for (rank_t rank = group * inner; rank < (group + 1) * inner; ++rank) {
      sent_by_rank const sent(s, rank);
      if (f.near.messages < sent.near_messages) f.near.messages = sent.near_messages;
      if (f.far.messages < sent.far_messages) f.far.messages = sent.far_messages;
      double const near_blocks = sent.near_chunks * blocks_per_chunk;
      if (f.near.sent_blocks < near_blocks) f.near.sent_blocks = near_blocks;
      out += sent.far_chunks * blocks_per_chunk;
    }
    if (f.far.sent_blocks < out) f.far.sent_blocks = out;
  }
}

}  // namespace detail

// Takes up to milliseconds where ranks are many: keep what it returns.
template <class S>
[[nodiscard]] level_factors level_factors_of(shape n) {
  bool const grouped = n.inner > 1 && n.inner < n.size && n.size % n.inner == 0;
  double const per_chunk = static_cast<double>(S::contract::blocks(n.size)) / chunk_count<S>(n);
  factors const whole = factors_of<S>(n);
  level_factors f;
  detail::walked_schedule const walked{&S::step_count, &S::step, n, grouped ? n.inner : 1};
  if (grouped) {
    detail::count_messages(walked, per_chunk, f);
    f.near.combined_blocks = whole.combined_blocks;
  } else {
    f.far = whole;
  }
  detail::walk(walked, documented_cost<S>(n), per_chunk, f);
  if (!grouped) f.far.rounds = whole.rounds;  // those of the worst root
  return f;
}

}  // namespace collx::inline abi_1::tune
