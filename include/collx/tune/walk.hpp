// SPDX-License-Identifier: Apache-2.0
// A walk through all steps of all ranks, for the cost model: how long the longest chain of messages is, and
// for how long links are busy.
#pragma once

#include "collx/core/array.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::tune {

// The use of links, in the time that one chunk (later: one block) takes on a link. A link goes out of every
// rank, and one into it; between groups, out of every group and into it.
struct link_use {
  double busiest = 0;  // of the link that is busy for longest
  double longest = 0;  // until the last chunk is where it belongs, if messages cost nothing but their bytes
};

namespace detail {

// A schedule without its type: what walks it is compiled once.
struct walked_schedule {
  std::int32_t (*step_count)(problem);
  primitive (*step)(problem, std::int32_t);
  shape ranks;       // as the schedule sees them
  rank_t group = 1;  // ranks that are near each other

  [[nodiscard]] problem of(rank_t rank) const { return {rank, ranks.size, 0, ranks.inner}; }
  [[nodiscard]] bool is_far(rank_t a, rank_t b) const { return a / group != b / group; }
};

// Messages on a chain of dependent ones; far ones count for more than any number of near ones.
struct chain_length {
  std::int32_t far = 0, near = 0;

  constexpr void at_least(chain_length const& other) {
    if (other.far > far || (other.far == far && other.near > near)) *this = other;
  }
};

// Lets all ranks take their steps, with room for every message. Messages take their links in the order in
// which they come up here: exact for links of one rank, and a guess for those that a group shares.
class chain_walk {
 public:
  chain_walk(walked_schedule const& s, std::int64_t messages_of_busiest)
      : s_(s),
        ranks_(static_cast<std::size_t>(s.ranks.size)),
        queues_(static_cast<std::size_t>(s.ranks.size) * static_cast<std::size_t>(s.ranks.size)),
        letters_(static_cast<std::size_t>(s.ranks.size * messages_of_busiest)),
        near_links_(static_cast<std::size_t>(2 * s.ranks.size)),
        far_links_(static_cast<std::size_t>(2 * s.ranks.size)) {}

  // What the walk found.
  chain_length longest{};
  link_use near{}, far{};

  void run() {
    for (bool progressed = true; progressed;) {
      progressed = false;
      for (rank_t r = 0; r < s_.ranks.size; ++r)
        while (take_step(r)) progressed = true;
    }
    for (auto const& rank : ranks_) {
      longest.at_least(rank.length);
      raise(near.longest, rank.at.near);
      raise(far.longest, rank.at.far);
    }
    for (link const& each : near_links_) raise(near.busiest, each.used);
    for (link const& each : far_links_) raise(far.busiest, each.used);
  }

 private:
  struct times {
    double near = 0, far = 0;
    [[nodiscard]] double& of(bool is_far) { return is_far ? far : near; }
  };
  struct letter {
    chain_length length{};
    times begins{};
    double chunks = 0;
    std::int32_t next = -1;
  };
  struct queue {
    std::int32_t first = -1, last = -1;
  };
  struct progress {
    std::int32_t step = 0;
    chain_length length{};
    times at{};
  };
  struct link {
    double free_at = 0, used = 0;

    // When a message of so many chunks that is there at a time begins to move.
    double take(double at, double chunks) {
      double const begins = at > free_at ? at : free_at;
      free_at = begins + chunks;
      used += chunks;
      return begins;
    }
  };

  static void raise(double& most, double value) {
    if (value > most) most = value;
  }
  [[nodiscard]] queue& from_to(rank_t sender, rank_t receiver) {
    return queues_[static_cast<std::size_t>(sender) * ranks_.size() + static_cast<std::size_t>(receiver)];
  }
  [[nodiscard]] link& link_of(rank_t rank, bool is_far, bool inward) {
    rank_t const owner = is_far ? rank / s_.group : rank;
    return (is_far ? far_links_ : near_links_)[2 * static_cast<std::size_t>(owner) + (inward ? 1 : 0)];
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
    double const chunks = step.from.empty() ? step.operand.count : step.target.count;
    for (std::int32_t k = 0; k < step.to.count; ++k)
      if (rank_t const peer = step.to.member(k, s_.ranks.size); peer != r) send(at, r, peer, chunks);
    ++at.step;
    return true;
  }

  void take(progress& at, rank_t sender, rank_t receiver) {
    queue& waiting = from_to(sender, receiver);
    letter& first = letters_[static_cast<std::size_t>(waiting.first)];
    waiting.first = first.next;
    at.length.at_least(first.length);
    bool const is_far = s_.is_far(sender, receiver);
    double const begins = link_of(receiver, is_far, true).take(first.begins.of(is_far), first.chunks);
    raise(at.at.of(is_far), begins + first.chunks);
    raise(at.at.of(!is_far), first.begins.of(!is_far));
  }

  void send(progress& at, rank_t sender, rank_t receiver, double chunks) {
    if (static_cast<std::size_t>(written_) == letters_.size())
      return;  // more than the schedule says it sends
    bool const is_far = s_.is_far(sender, receiver);
    letter& made = letters_[static_cast<std::size_t>(written_)];
    made.length = at.length;
    ++(is_far ? made.length.far : made.length.near);
    made.begins = at.at;
    made.begins.of(is_far) = link_of(sender, is_far, false).take(at.at.of(is_far), chunks);
    made.chunks = chunks;
    queue& waiting = from_to(sender, receiver);
    if (waiting.first < 0) waiting.first = written_;
    else letters_[static_cast<std::size_t>(waiting.last)].next = written_;
    waiting.last = written_++;
  }

  walked_schedule const& s_;
  array<progress> ranks_;
  array<queue> queues_;
  array<letter> letters_;
  array<link> near_links_, far_links_;
  std::int32_t written_ = 0;
};

}  // namespace detail

}  // namespace collx::inline abi_1::tune
