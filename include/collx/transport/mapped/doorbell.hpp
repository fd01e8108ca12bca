// SPDX-License-Identifier: Apache-2.0
// How a rank that has nothing to do sleeps, and is woken by whoever has something for it, without a fence
// on the path of a message.
//
//   sender:   store the letter;      is the receiver asleep?   then ring
//   sleeper:  say that it is asleep; is there a letter?        then stay awake
//
// Each must not look before its own store can be seen, or both miss each other. The sleeper sees to it for
// both sides: between its two steps it has the system fence every processor that runs a rank. A sender that
// stored before its fence is seen by the sleeper's look; one that looks after its fence sees that the
// receiver sleeps. Where the system refuses, a wake-up may be lost, and naps are so short that it matters
// little.
#pragma once

#include "collx/core/futex.hpp"
#include "collx/transport/mapped/layout.hpp"

namespace collx::inline abi_1::transport::mapped {

// One per rank of a world, in memory all ranks see. On a line of its own, which stays in every sender's
// cache while its owner is awake. Threads of one rank that use different communicators share it.
struct alignas(line_bytes) doorbell {
  atomic_word<std::uint32_t> asleep;  // 1: whoever has something for this rank must ring
  atomic_word<std::uint32_t> rings;   // what its owner sleeps on; counts, and may wrap around

  // Called after each store that its owner may be waiting for.
  void ring_if_asleep() noexcept {
    // Keeps the compiler from looking first; what the processor may do, the sleeper's fence rules out.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Relaxed: see above.
    if (COLLX_UNLIKELY(asleep.load(std::memory_order_relaxed) != 0)) ring_once();
  }

  // Wakes its owner whatever it says: for what was stored before this call.
  COLLX_COLD void ring() noexcept {
    // Release: a sleeper that reads this count before it looks sees what was stored before.
    rings.fetch_add(1, std::memory_order_release);
    futex_wake_all(rings);
  }

 private:
  // Of many who have something for a sleeper one makes the system call. Relaxed: the exchange only chooses
  // who; what the others stored is found by the look after the next fence, if not before.
  COLLX_COLD void ring_once() noexcept {
    if (asleep.exchange(0, std::memory_order_relaxed) != 0) ring();
  }
};

// What a rank keeps to itself about its own doorbell; one per communicator.
class sleeper {
 public:
  // `fenced`: all ranks have joined the fences.
  sleeper(doorbell& own, bool fenced) noexcept : own_(&own), fenced_(fenced) {}

  // After this whoever has something for this rank rings. What came before is found by one more look,
  // which must follow; then sleep().
  COLLX_COLD void announce() noexcept {
    // Acquire: the count is read before all that follows, so that no ring after it goes unnoticed; and
    // what was stored before a ring that is counted is seen by the look.
    seen_ = own_->rings.load(std::memory_order_acquire);
    // Sequentially consistent, so that the look comes after: this side's half of the fence where the
    // system does not give the whole.
    own_->asleep.exchange(1, std::memory_order_seq_cst);
    if (fenced_) fence_everybody();
  }

  // Sleeps until somebody rings, or has rung since announce(), but no longer than `at_most_us`; false: that
  // time is over. May be repeated without announcing again.
  [[nodiscard]] COLLX_COLD bool sleep(std::uint64_t at_most_us) noexcept {
    std::uint64_t const longest_us = fenced_ ? nap_us : unfenced_nap_us;
    ++naps_;
    bool const rung = futex_sleep(own_->rings, seen_, at_most_us < longest_us ? at_most_us : longest_us);
    late_naps_ += !rung;
    return rung;
  }

  // How often this rank slept, and how many of these naps nobody ended.
  [[nodiscard]] std::uint64_t naps() const noexcept { return naps_; }
  [[nodiscard]] std::uint64_t late_naps() const noexcept { return late_naps_; }

 private:
  // Between naps a rank looks whether the one it waits for still lives.
  static constexpr std::uint64_t nap_us = 10'000;
  static constexpr std::uint64_t unfenced_nap_us = 1'000;

  doorbell* own_;
  bool fenced_;
  std::uint32_t seen_ = 0;
  std::uint64_t naps_ = 0;
  std::uint64_t late_naps_ = 0;
};

}  // namespace collx::inline abi_1::transport::mapped
