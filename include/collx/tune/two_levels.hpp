// SPDX-License-Identifier: Apache-2.0
// What of a schedule's messages stays inside a group of near ranks (shape::inner: those of a host), and what
// goes from group to group, so that the cost model can price the two apart.
#pragma once

#include <new>

#include "collx/core/array.hpp"
#include "collx/tune/cost_model.hpp"

namespace collx::inline abi_1::tune {

// The two kinds of messages, each as cost_model.hpp counts: rounds are those of one chain, the one with the
// most messages between groups; messages are those of the rank that sends most of the kind. Near blocks are
// those of the rank that sends most; far ones those of the group that does, whose ranks share one way out.
// Where ranks have no groups everything is far.
struct level_factors {
  factors near, far;
};

struct level_models {
  log_gp near, far;

  [[nodiscard]] constexpr double operator()(level_factors const& f, std::size_t block_bytes) const {
    return near(f.near, block_bytes) + far(f.far, block_bytes);
  }
};

namespace detail {

// A schedule without its type: what walks it is compiled once.
struct walked_schedule {
  std::int32_t (*step_count)(problem);
  primitive (*step)(problem, std::int32_t);
  shape ranks;

  [[nodiscard]] problem of(rank_t rank) const { return {rank, ranks.size, 0, ranks.inner}; }
  [[nodiscard]] bool is_far(rank_t a, rank_t b) const { return a / ranks.inner != b / ranks.inner; }
};

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

// Messages on a chain of dependent ones; far ones count for more than any number of near ones.
struct chain_length {
  std::int32_t far = 0, near = 0;

  constexpr void at_least(chain_length const& other) {
    if (other.far > far || (other.far == far && other.near > near)) *this = other;
  }
};

// Lets all ranks take their steps, with room for every message, and remembers of each message how long the
// chain is that it ends.
class chain_walk {
 public:
  chain_walk(walked_schedule const& s, std::int64_t messages_of_busiest)
      : s_(s),
        ranks_(static_cast<std::size_t>(s.ranks.size)),
        queues_(static_cast<std::size_t>(s.ranks.size) * static_cast<std::size_t>(s.ranks.size)),
        letters_(static_cast<std::size_t>(s.ranks.size * messages_of_busiest)) {}

  [[nodiscard]] chain_length longest() {
    chain_length all;
    for (bool progressed = true; progressed;) {
      progressed = false;
      for (rank_t r = 0; r < s_.ranks.size; ++r)
        while (take_step(r)) progressed = true;
    }
    for (auto const& rank : ranks_) all.at_least(rank.length);
    return all;
  }

 private:
  struct letter {
    chain_length length{};
    std::int32_t next = -1;
  };
  struct queue {
    std::int32_t first = -1, last = -1;
  };
  struct progress {
    std::int32_t step = 0;
    chain_length length{};
  };

  [[nodiscard]] queue& from_to(rank_t sender, rank_t receiver) {
    return queues_[static_cast<std::size_t>(sender) * ranks_.size() + static_cast<std::size_t>(receiver)];
  }

  bool take_step(rank_t r) {
    progress& at = ranks_[static_cast<std::size_t>(r)];
    if (at.step >= s_.step_count(s_.of(r))) return false;
    primitive const step = s_.step(s_.of(r), at.step);
    for (std::int32_t k = 0; k < step.from.count; ++k) {
      rank_t const peer = step.from.member(k, s_.ranks.size);
      if (peer != r && from_to(peer, r).first < 0) return false;
    }
    for (std::int32_t k = 0; k < step.from.count; ++k)
      if (rank_t const peer = step.from.member(k, s_.ranks.size); peer != r) take(at, peer, r);
    for (std::int32_t k = 0; k < step.to.count; ++k)
      if (rank_t const peer = step.to.member(k, s_.ranks.size); peer != r) send(at, r, peer);
    ++at.step;
    return true;
  }

  void take(progress& at, rank_t sender, rank_t receiver) {
    queue& waiting = from_to(sender, receiver);
    letter const& first = letters_[static_cast<std::size_t>(waiting.first)];
    at.length.at_least(first.length);
    waiting.first = first.next;
  }

  void send(progress const& at, rank_t sender, rank_t receiver) {
    if (static_cast<std::size_t>(written_) == letters_.size())
      return;  // more than the schedule says it sends
    letter& made = letters_[static_cast<std::size_t>(written_)];
    made.length = at.length;
    ++(s_.is_far(sender, receiver) ? made.length.far : made.length.near);
    queue& waiting = from_to(sender, receiver);
    if (waiting.first < 0) waiting.first = written_;
    else letters_[static_cast<std::size_t>(waiting.last)].next = written_;
    waiting.last = written_++;
  }

  walked_schedule const& s_;
  array<progress> ranks_;
  array<queue> queues_;
  array<letter> letters_;
  std::int32_t written_ = 0;
};

// Of more ranks, and where there is no memory to find out, every round is taken to be far: to walk a ring of
// that many takes longer than a choice may.
[[nodiscard]] COLLX_COLD inline chain_length longest_chain(walked_schedule const& s, cost const& documented) {
  constexpr rank_t walked_most = 128;
  chain_length const all_far{documented.rounds, 0};
  if (s.ranks.size > walked_most) return all_far;
  try {
    return chain_walk(s, documented.messages).longest();
  } catch (std::bad_alloc const&) {
    return all_far;
  }
}

[[nodiscard]] COLLX_COLD inline level_factors count_levels(walked_schedule const& s, cost const& documented,
                                                           double blocks_per_chunk) {
  level_factors f;
  rank_t const inner = s.ranks.inner, groups = s.ranks.size / inner;
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
  chain_length const chain = longest_chain(s, documented);
  f.near.rounds = chain.near;
  f.far.rounds = chain.far;
  return f;
}

}  // namespace detail

// Takes milliseconds where there are groups and many ranks: keep what it returns.
template <class S>
[[nodiscard]] level_factors level_factors_of(shape n) {
  factors const whole = factors_of<S>(n);
  if (n.inner <= 1 || n.inner >= n.size || n.size % n.inner != 0) return {{}, whole};
  double const per_chunk = static_cast<double>(S::contract::blocks(n.size)) / chunk_count<S>(n);
  level_factors f = detail::count_levels({&S::step_count, &S::step, n}, documented_cost<S>(n), per_chunk);
  f.near.combined_blocks = whole.combined_blocks;
  return f;
}

}  // namespace collx::inline abi_1::tune
