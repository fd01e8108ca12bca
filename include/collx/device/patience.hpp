// SPDX-License-Identifier: Apache-2.0
// How long a thread of a team looks for something, and what ends that before: a deadline, or a word by
// which somebody says that all is over. Every wait in a kernel goes through here.
#pragma once

#include "collx/core/clock.hpp"
#include "collx/core/status.hpp"
#include "collx/device/system_atomic.hpp"

#if !defined(__CUDA_ARCH__)
#include <sched.h>
#endif

namespace collx::inline abi_1::device {

// Only differences mean anything. Kernels and hosts do not compare their clocks.
[[nodiscard]] COLLX_HD inline std::uint64_t now_ns() noexcept {
#if defined(__CUDA_ARCH__)
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  return collx::now_ns();
#endif
}

struct patience {
  std::uint64_t timeout_ns = 30'000'000'000;
  // Not 0: stop. One lies in this processor's memory, where peers write; the other in the host's.
  std::uint32_t const* stopped_by_peer = nullptr;
  std::uint32_t const* stopped_by_host = nullptr;

  // Relaxed: nothing is read because of these words.
  [[nodiscard]] COLLX_HD bool is_over() const noexcept {
    return load_relaxed(stopped_by_peer) != 0 || load_relaxed(stopped_by_host) != 0;
  }
};

namespace detail {

// The clock and the host's memory are far away from a GPU: they are looked at once in so many looks.
#if defined(__CUDA_ARCH__)
inline constexpr std::uint32_t looks_between_checks = 512;
#else
inline constexpr std::uint32_t looks_between_checks = 16;
#endif

// On the host teams outnumber processors.
COLLX_HD inline void rest() noexcept {
#if !defined(__CUDA_ARCH__)
  sched_yield();
#endif
}

}  // namespace detail

// What is waited for cannot come in any other way.
struct no_other_way {
  COLLX_HD bool operator()() const noexcept { return false; }
};

// Returns ok once ready() has been true; timeout or aborted otherwise; mismatch if came_otherwise() says that
// what is waited for is here as something else, which is asked as seldom as the clock.
template <class Ready, class CameOtherwise = no_other_way>
[[nodiscard]] COLLX_HD_INLINE status wait_until(patience const& limits, Ready const& ready,
                                         CameOtherwise const& came_otherwise = {}) noexcept {
  std::uint64_t began = 0;
  for (std::uint32_t looks = 1; !ready(); ++looks) {
    if (looks % detail::looks_between_checks != 0) {
      detail::rest();
      continue;
    }
    if (came_otherwise()) return status::mismatch;
    if (limits.is_over()) return status::aborted;
    std::uint64_t const now = now_ns();
    if (began == 0) began = now;
    else if (now - began > limits.timeout_ns) return status::timeout;
  }
  return status::ok;
}

}  // namespace collx::inline abi_1::device
