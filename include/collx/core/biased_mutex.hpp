// SPDX-License-Identifier: Apache-2.0
// A lock for what nearly always one thread uses: while no other has asked for it, that thread takes it by a
// store and a load of lines of its own. Taken and given back by instructions that lock the bus, a dozen times
// for each message, it took a twentieth of the time of a small one.
//
//   the first thread:  say that it is inside;        has another asked?  then get out, and wait for the mutex
//   another one:       with the mutex, say so once;  is the first inside?  then wait until it is not
//
// Each must not look before what it said can be seen. The other one sees to that for both, once (futex.hpp);
// from then on everybody takes the mutex.
#pragma once

#include <time.h>

#include "collx/core/futex.hpp"
#include "collx/core/mutex.hpp"

namespace collx::inline abi_1 {

class biased_mutex {
 public:
  biased_mutex() noexcept : shared_(!join_fences()) {}
  biased_mutex(biased_mutex const&) = delete;

  void lock() noexcept {
    if (COLLX_LIKELY(is_first() && enter())) return;
    lock_with_others();
  }
  void unlock() noexcept {
    // Relaxed: only the first thread writes this word. Release: who waits outside sees what was done inside.
    if (COLLX_LIKELY(is_first() && inside_.load(std::memory_order_relaxed)))
      inside_.store(false, std::memory_order_release);
    else mutex_.unlock();
  }

  // Whether a second thread has taken it, or the system offers no fence.
  [[nodiscard]] bool is_shared() const noexcept { return shared_.load(std::memory_order_relaxed); }

 private:
  // Relaxed: it is this thread only if this thread has said so.
  [[nodiscard]] bool is_first() const noexcept {
    return first_.load(std::memory_order_relaxed) == pthread_self();
  }

  // Only the first thread. Relaxed, and no more than the compiler held back: a second thread makes this one's
  // processor execute a fence between what it says and what it looks for, so either it sees the store, or
  // this the other's. While nobody else has been here there is nothing to acquire.
  [[nodiscard]] bool enter() noexcept {
    inside_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (COLLX_LIKELY(!shared_.load(std::memory_order_relaxed))) return true;
    inside_.store(false, std::memory_order_release);
    return false;
  }

  COLLX_NEVER_INLINE void lock_with_others() noexcept {
    mutex_.lock();
    if (is_shared()) return;
    // Relaxed, both: written with the mutex only.
    if (first_.load(std::memory_order_relaxed) == pthread_t{}) {
      first_.store(pthread_self(), std::memory_order_relaxed);
      inside_.store(true, std::memory_order_relaxed);
      return mutex_.unlock();
    }
    shared_.store(true, std::memory_order_relaxed);
    fence_everybody();
    // Acquire: what the first thread did before it got out. It is never inside for long again. A nap: who
    // yields gives way to no thread of a lower real-time priority, and the first one may be that.
    timespec const nap{0, 10'000};
    while (inside_.load(std::memory_order_acquire)) nanosleep(&nap, nullptr);
  }

  posix_mutex mutex_;
  atomic_word<pthread_t> first_{};
  atomic_word<bool> inside_{false};
  atomic_word<bool> shared_;
};

}  // namespace collx::inline abi_1
