// SPDX-License-Identifier: Apache-2.0
// How a rank waits: spin while the answer may be a cache miss away, then give the processor to
// whoever it is waiting for, then sleep until somebody rings. Every wait of the library goes through
// here, so every wait has a deadline and notices an abort.
#pragma once

#include <sched.h>

#include <concepts>

#include "collx/core/clock.hpp"
#include "collx/core/status.hpp"
#include "collx/core/types.hpp"
#include "collx/device/cpu.hpp"

namespace collx::inline abi_1::exec {

// How long a rank that waits stays awake: it spins so often, then yields for so long.
struct wakefulness {
  std::uint32_t spins = 0;
  std::uint32_t yield_us = 0;
};

// How often a rank that has a processor looks before the processor goes to whoever wants it: at memory, and
// where each look is a system call.
inline constexpr std::uint32_t looks_at_memory = 4096;
inline constexpr std::uint32_t looks_by_system_call = 32;

// With a processor per rank a few looks catch nearly every message. With fewer (`sharing`), they only delay
// the rank that would send it: yield at once. `yield_us` 0: sleep at once.
[[nodiscard]] constexpr wakefulness wakefulness_of(bool sharing, std::uint32_t yield_us,
                                                   std::uint32_t looks = looks_at_memory) noexcept {
  return {sharing || yield_us == 0 ? 0 : looks, yield_us};
}

// Where a rank can sleep: an endpoint whose peers ring.
//   prepare_to_sleep()   from now on they do. False: not now. One more look must follow, then
//   sleep(at_most_us)    until somebody has rung; false: the time is over. Repeatable.
template <class Place>
concept sleeping_place = requires(Place& place, std::uint64_t at_most_us) {
  { place.prepare_to_sleep() } noexcept -> std::same_as<bool>;
  { place.sleep(at_most_us) } noexcept -> std::same_as<bool>;
};

class waiter {
 public:
  waiter(wakefulness how, std::uint64_t timeout_us) noexcept : how_(how), timeout_us_(timeout_us) {}

  // Called after each fruitless look. interrupted() says whether waiting has become pointless; it
  // is asked rarely, because it may cost system calls. Who has no sleeping_place yields for ever.
  template <class Interrupted, class Place>
  [[nodiscard]] status pause(Interrupted const& interrupted, [[maybe_unused]] Place& place) noexcept {
    if (COLLX_LIKELY(round_ < how_.spins)) {
      // A pause costs up to 140 cycles, as much as the message takes: not at first, but where it pays.
      if (++round_ > spins_without_pause) relax();
      else device::cpu::pause_between_looks();
      return status::ok;
    }
    if constexpr (sleeping_place<Place>) {
      if (!(prepared_ ? naps(place) : drowsy(place))) return status::ok;
    } else {
      if (!yields()) return status::ok;
    }
    status const why = interrupted();
    return why == status::ok && late_ ? status::timeout : why;
  }

  // Something moved: the next wait begins, with a spin and a deadline of its own.
  void restart() noexcept {
    stay_awake();
    started_us_ = 0;
  }

  // Something else moved: no time to sleep.
  void stay_awake() noexcept {
    round_ = 0;
    awake_since_us_ = 0;
    prepared_ = false;
  }

  [[nodiscard]] std::uint64_t elapsed_us() const noexcept {
    return started_us_ == 0 ? 0 : now_us() - started_us_;
  }

 private:
  // Gives the processor away; true when it is time to look around. Apart from pause(), which is
  // compiled anew for every question.
  COLLX_NEVER_INLINE bool yields() noexcept {
    sched_yield();
    std::uint32_t const yields = ++round_ - how_.spins;
    // A yield takes less than a microsecond, or the turns of all others who want the processor: milliseconds
    // each. Clocks are cheap enough to see which at powers of two, but for the first: most waits end there.
    if ((yields & (yields - 1)) != 0 || yields < yields_unseen) return false;
    std::uint64_t const now = now_us();
    if (yields == yields_unseen) yields_began_us_ = now;
    if (yields < yields_per_look && now - yields_began_us_ < yields_us_max) return false;
    round_ = how_.spins;
    look_at_clock();
    return true;
  }

  // The same, until it has lasted so long that this rank had better sleep.
  template <class Place>
  COLLX_NEVER_INLINE bool drowsy(Place& place) noexcept {
    if (how_.yield_us == 0) look_at_clock();
    else if (!yields()) return false;
    if (now_us_ - awake_since_us_ >= how_.yield_us) prepared_ = place.prepare_to_sleep();
    return true;
  }

  // Nothing was found since peers know that this rank sleeps.
  template <class Place>
  COLLX_NEVER_INLINE bool naps(Place& place) noexcept {
    std::uint64_t const waited_us = now_us_ - started_us_;
    bool const rung = place.sleep(timeout_us_ > waited_us ? timeout_us_ - waited_us : 0);
    if (rung) stay_awake();
    look_at_clock();
    return true;
  }

  void look_at_clock() noexcept {
    now_us_ = now_us();
    if (started_us_ == 0) started_us_ = now_us_;  // late by microseconds: the fast path reads no clock
    if (awake_since_us_ == 0) awake_since_us_ = now_us_;
    late_ = now_us_ - started_us_ >= timeout_us_;
  }

  static constexpr std::uint32_t spins_without_pause = 64;
  static constexpr std::uint32_t yields_per_look = 64, yields_unseen = 4;
  static constexpr std::uint64_t yields_us_max = 10'000;

  wakefulness how_;
  std::uint32_t round_ = 0;
  std::uint64_t timeout_us_;
  std::uint64_t started_us_ = 0;
  std::uint64_t awake_since_us_ = 0;
  std::uint64_t yields_began_us_ = 0;  // of those since the last look
  std::uint64_t now_us_ = 0;
  bool late_ = false;
  bool prepared_ = false;
};

}  // namespace collx::inline abi_1::exec
