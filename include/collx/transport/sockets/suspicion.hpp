// SPDX-License-Identifier: Apache-2.0
// Whom a rank blames when a deadline passes. The peer it waits for may itself wait for somebody who waits for
// the one that is stuck. So who waits asks the peer from time to time, and a rank that is asked says whom it
// blames; one that gives no answer is blamed. What is stuck is so found along the chain of waits, a link of
// it for every question.
#pragma once

#include <cstdint>

#include "collx/core/types.hpp"

namespace collx::inline abi_1::transport::sockets {

class suspicion {
 public:
  // So often within a deadline; a question to which there is no answer by then is taken for no answer.
  static constexpr std::uint64_t questions_per_deadline = 8;

  [[nodiscard]] rank_t peer() const noexcept { return peer_; }
  [[nodiscard]] std::uint64_t seen_us() const noexcept { return seen_us_; }

  // This rank waits for a peer, and is asked now and then whether it still does. True: a question is due.
  [[nodiscard]] bool still_waits(rank_t peer, std::uint64_t now, std::uint64_t deadline_us) noexcept {
    if (peer != peer_ || !waits(now)) {  // what was said in a wait that is over says nothing of this one
      *this = suspicion{};
      peer_ = peer;
      since_us_ = now;
      asked_us_ = now;  // the first question is due in a while: most waits are over by then
      answered_ = true;
    }
    seen_us_ = now;
    period_us_ = deadline_us / questions_per_deadline;
    if (now - asked_us_ < period_us_) return false;
    if (!answered_) silent_ = true;
    asked_us_ = now;
    answered_ = false;
    return true;
  }

  // Whether it has waited, when it was last asked, for longer than ranks mostly differ in when they call.
  [[nodiscard]] bool waits_long() const noexcept {
    std::uint64_t const part_us = period_us_ / 4;
    std::uint64_t const long_us = part_us < long_us_max ? part_us : long_us_max;
    return seen_us_ - since_us_ >= (long_us > long_us_min ? long_us : long_us_min);
  }

  // The peer that was asked blames `whom`, or nobody (no_rank).
  void hear(rank_t peer, rank_t whom) noexcept {
    if (peer != peer_) return;
    answered_ = true;
    silent_ = false;
    blamed_ = whom;
  }

  // Whom this rank blames; no_rank if it waits for nobody.
  [[nodiscard]] rank_t blames(std::uint64_t now) const noexcept {
    if (!waits(now)) return no_rank;
    return silent_ || blamed_ == no_rank ? peer_ : blamed_;
  }

 private:
  // With a short time-out ranks do not differ by less.
  static constexpr std::uint64_t long_us_min = 10'000, long_us_max = 5'000'000;
  // Who waits looks here again after so long at most: a nap, on a machine that does something else.
  static constexpr std::uint64_t nap_us = 50'000;

  [[nodiscard]] bool waits(std::uint64_t now) const noexcept {
    return peer_ != no_rank && now - seen_us_ < 2 * period_us_ + nap_us;
  }

  rank_t peer_ = no_rank;
  rank_t blamed_ = no_rank;
  bool answered_ = false;
  bool silent_ = false;
  std::uint64_t since_us_ = 0;
  std::uint64_t asked_us_ = 0;
  std::uint64_t seen_us_ = 0;  // when it last waited
  std::uint64_t period_us_ = 0;
};

// The same of a rank whose threads wait for several peers at a time, each with a communicator of its own.
class suspicions {
 public:
  [[nodiscard]] bool still_waits(rank_t peer, std::uint64_t now, std::uint64_t deadline_us) noexcept {
    suspicion* its = find(peer);
    if (its == nullptr) {
      its = waits_;
      for (suspicion& each : waits_)  // the wait that has been over for longest makes room
        if (each.seen_us() < its->seen_us()) its = &each;
    }
    return its->still_waits(peer, now, deadline_us);
  }
  [[nodiscard]] bool waits_long(rank_t peer) noexcept {
    suspicion const* const its = find(peer);
    return its != nullptr && its->waits_long();
  }
  void hear(rank_t peer, rank_t whom) noexcept {
    for (suspicion& each : waits_) each.hear(peer, whom);
  }

  // Whom to blame for a wait for `peer`; no_rank: nobody knows of it.
  [[nodiscard]] rank_t blames_for(rank_t peer, std::uint64_t now) noexcept {
    suspicion const* const its = find(peer);
    return its == nullptr ? no_rank : its->blames(now);
  }
  // What `asker` is told: he knows himself, so rather another one.
  [[nodiscard]] rank_t blames_to(rank_t asker, std::uint64_t now) const noexcept {
    rank_t found = no_rank;
    for (suspicion const& each : waits_) {
      rank_t const blamed = each.blames(now);
      if (blamed != no_rank && (found == no_rank || found == asker)) found = blamed;
    }
    return found;
  }

 private:
  static constexpr int waits_max = 8;

  [[nodiscard]] suspicion* find(rank_t peer) noexcept {
    for (suspicion& each : waits_)
      if (each.peer() == peer) return &each;
    return nullptr;
  }

  suspicion waits_[waits_max];
};

}  // namespace collx::inline abi_1::transport::sockets
