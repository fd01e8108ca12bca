// SPDX-License-Identifier: Apache-2.0
// Whether the owner of a block is at its peers' buffers, in the block, where they can see it: what
// exec/presence.hpp asks of ranks that read each other's private memory.
#pragma once

#include <sched.h>

#include "collx/core/clock.hpp"
#include "collx/core/futex.hpp"
#include "collx/transport/mapped/layout.hpp"

namespace collx::inline abi_1::transport::mapped {

// On a line of its own, which stays in its owner's cache while nobody gives up. `fenced`: all ranks have
// joined the fences.
class alignas(line_bytes) presence {
 public:
  // By the owner. False: barred.
  [[nodiscard]] COLLX_ALWAYS_INLINE bool approach(bool fenced) noexcept {
    if (COLLX_LIKELY(fenced)) {
      at_peers_.store(1, std::memory_order_relaxed);
      // Keeps the compiler from looking first; what the processor may do, the fence of who gives up excludes.
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      // Sequentially consistent, as are bar() and is_at_peers(): one of the two sides sees the other.
      at_peers_.exchange(1, std::memory_order_seq_cst);
    }
    // Sequentially consistent for that, at no cost; acquire: who is barred sees the alarm that came before.
    if (COLLX_LIKELY(barred_.load(std::memory_order_seq_cst) == 0)) return true;
    (void)withdraw();
    return false;
  }
  // Release: what was read and written at the peers' was so before they can see this. False: barred
  // meanwhile.
  COLLX_ALWAYS_INLINE bool withdraw() noexcept {
#if !defined(__SANITIZE_THREAD__)
    // What was read was so before this look, which by itself (relaxed) might come first. On x86 it is no
    // instruction. g++'s thread sanitizer refuses fences; this one publishes nothing.
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
    bool const undisturbed = barred_.load(std::memory_order_relaxed) == 0;
    at_peers_.store(0, std::memory_order_release);
    return undisturbed;
  }

  // By a peer that gives up, after it has raised the alarm; where there are fences, one must follow.
  void bar() noexcept { barred_.store(1, std::memory_order_seq_cst); }
  // What the owner did with the memory of who asks is over when it says no.
  [[nodiscard]] bool is_at_peers() const noexcept { return at_peers_.load(std::memory_order_seq_cst) != 0; }

 private:
  atomic_word<std::uint32_t> at_peers_;
  atomic_word<std::uint32_t> barred_;
};
static_assert(sizeof(presence) == line_bytes);

// Bars all peers, and returns when none of them is at this rank's buffers, or after so long. `of(peer)`: its
// presence; `gone(peer)`: whether it has ended, perhaps in the middle.
template <class Of, class Gone>
COLLX_COLD void outlast(rank_t self, rank_t size, bool fenced, std::uint64_t at_most_us, Of const& of,
                        Gone const& gone) noexcept {
  for (rank_t peer = 0; peer < size; ++peer)
    if (peer != self) of(peer).bar();
  if (fenced) fence_everybody();
  std::uint64_t const begin_us = now_us();
  for (rank_t peer = 0; peer < size; ++peer)
    while (peer != self && of(peer).is_at_peers() && !gone(peer) && now_us() - begin_us < at_most_us)
      sched_yield();
}

}  // namespace collx::inline abi_1::transport::mapped
