// SPDX-License-Identifier: Apache-2.0
// How a rank waits: spin while the answer may be a cache miss away, then give the processor to
// whoever it is waiting for. Every wait of the library goes through here, so every wait has a
// deadline and notices an abort.
#pragma once

#include <sched.h>
#include <unistd.h>

#include "collx/core/clock.hpp"
#include "collx/core/status.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1::exec {

// With a processor per rank a short spin catches nearly every message. With fewer, spinning only
// delays the rank that would send it: yield at once.
[[nodiscard]] inline std::uint32_t spins_before_yield(rank_t ranks_here) noexcept {
  static long const processors = sysconf(_SC_NPROCESSORS_ONLN);
  return ranks_here <= processors ? 4096 : 0;
}

class waiter {
 public:
  waiter(std::uint32_t spins, std::uint64_t timeout_us) noexcept : spins_(spins), timeout_us_(timeout_us) {}

  // Called after each fruitless look. interrupted() says whether waiting has become pointless; it
  // is asked rarely, because it may cost system calls.
  template <class Interrupted>
  [[nodiscard]] status pause(Interrupted const& interrupted) noexcept {
    if (COLLX_LIKELY(round_ < spins_)) {
      // A pause costs up to 140 cycles, as much as the message takes: not at first.
      if (++round_ > spins_without_pause) relax();
      return status::ok;
    }
    if (!yields()) return status::ok;
    status const why = interrupted();
    return why == status::ok && late_ ? status::timeout : why;
  }

  // Something moved: the next wait begins, with a spin and a deadline of its own.
  void restart() noexcept {
    round_ = 0;
    started_us_ = 0;
  }

  [[nodiscard]] std::uint64_t elapsed_us() const noexcept {
    return started_us_ == 0 ? 0 : now_us() - started_us_;
  }

 private:
  // Gives the processor away; true when it is time to look around. Apart from pause(), which is
  // compiled anew for every question.
  COLLX_NEVER_INLINE bool yields() noexcept {
    sched_yield();
    if (++round_ - spins_ < yields_per_look) return false;
    round_ = spins_;
    std::uint64_t const now = now_us();
    if (started_us_ == 0) started_us_ = now;  // late by microseconds: the fast path reads no clock
    late_ = now - started_us_ >= timeout_us_;
    return true;
  }

  static constexpr std::uint32_t spins_without_pause = 64;
  static constexpr std::uint32_t yields_per_look = 64;

  std::uint32_t spins_;
  std::uint32_t round_ = 0;
  std::uint64_t timeout_us_;
  std::uint64_t started_us_ = 0;
  bool late_ = false;
};

}  // namespace collx::inline abi_1::exec
