// SPDX-License-Identifier: Apache-2.0
// How Linux lets a thread sleep until a word of memory changes, and orders what other processors do without
// a fence of theirs. Words may lie in memory that several processes share.
#pragma once

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "collx/core/atomic_word.hpp"
#include "collx/core/config.hpp"

namespace collx::inline abi_1 {

static_assert(sizeof(atomic_word<std::uint32_t>) == 4);

// Sleeps while `word` is `expected`, but no longer than `at_most_us`; false: that time is over. May return
// early for no reason.
[[nodiscard]] COLLX_COLD inline bool futex_sleep(atomic_word<std::uint32_t>& word, std::uint32_t expected,
                                                 std::uint64_t at_most_us) noexcept {
  timespec const at_most{static_cast<time_t>(at_most_us / 1'000'000),
                         static_cast<long>(at_most_us % 1'000'000 * 1'000)};
  // Not the private kind: the word may lie in a segment, at another address in each process.
  return syscall(SYS_futex, &word, FUTEX_WAIT, expected, &at_most, nullptr, 0) == 0 || errno != ETIMEDOUT;
}

COLLX_COLD inline void futex_wake_all(atomic_word<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

// This process takes part in fence_everybody() from now on; false: the system does not offer that.
[[nodiscard]] COLLX_COLD inline bool join_fences() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

// A full fence of this thread, and of every thread of every process that joined: each executes one at some
// point of its program between begin and end of this call. Costs microseconds, here and there.
COLLX_COLD inline void fence_everybody() noexcept {
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

}  // namespace collx::inline abi_1
