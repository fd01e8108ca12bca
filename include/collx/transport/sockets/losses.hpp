// SPDX-License-Identifier: Apache-2.0
// What a rank knows of ranks that are gone, and has not seen end itself. Guarded by the world's lock.
#pragma once

#include <cstdint>
#include <utility>

#include "collx/core/array.hpp"
#include "collx/core/clock.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1::transport::sockets {

class losses {
 public:
  COLLX_COLD losses(rank_t size, std::uint64_t timeout_us)
      : lost_(static_cast<std::size_t>(size)),
        refused_us_(static_cast<std::size_t>(size)),
        patience_us_(timeout_us / 4 < word_patience_us ? timeout_us / 4 : word_patience_us) {}

  // False: it was known.
  [[nodiscard]] COLLX_COLD bool add(rank_t who) noexcept {
    return !std::exchange(lost_[static_cast<std::size_t>(who)], true);
  }
  [[nodiscard]] bool holds(rank_t who) const noexcept { return lost_[static_cast<std::size_t>(who)]; }

  // Nobody listens any more where a peer did. If it has left because another was lost, word of that is on its
  // way here, by those who were connected with both; whoever called it lost before would blame the wrong one.
  [[nodiscard]] COLLX_COLD bool others_may_know(rank_t peer) noexcept {
    std::uint64_t const now = now_us();
    std::uint64_t& since = refused_us_[static_cast<std::size_t>(peer)];
    if (since == 0) since = now;
    return lost_.size() > 2 && now - since < patience_us_;
  }

 private:
  static constexpr std::uint64_t word_patience_us = 1'000'000;  // with word of a failure, by other ranks

  array<bool> lost_;                 // whose processes are known to be gone
  array<std::uint64_t> refused_us_;  // since when it is known that a peer does not listen any more; 0: it may
  std::uint64_t patience_us_;
};

}  // namespace collx::inline abi_1::transport::sockets
