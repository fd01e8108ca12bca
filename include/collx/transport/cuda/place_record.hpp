// SPDX-License-Identifier: Apache-2.0
// A memory_place that one thread writes while others read it: they get what was written at once, or nothing,
// and never wait.
#pragma once

#include <atomic>

#include "collx/transport/cuda/memory_place.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

// A sequence lock: odd while somebody writes, and another number after each write. Fences are left out, since
// the thread sanitizer does not know them; acquire and release on the fields do the same and cost nothing on
// x86.
class alignas(64) place_record {
 public:
  // False if it is being written, or was while it was read; `place` then holds nothing of use.
  [[nodiscard]] bool read(memory_place& place) const noexcept {
    // Acquire: the fields are not read before. With the number of a finished write come its fields.
    std::uint64_t const before = sequence_.load(std::memory_order_acquire);
    // Acquire: a field of a later write brings with it that write's odd number, so the check below sees a
    // difference; and the check is not made before the fields are read.
    place.base = base_.load(std::memory_order_acquire);
    place.bytes = bytes_.load(std::memory_order_acquire);
    place.id = id_.load(std::memory_order_acquire);
    std::uint64_t const what = what_.load(std::memory_order_acquire);
    place.kind = static_cast<place_kind>(what & 0xff);
    place.device = static_cast<std::int32_t>(static_cast<std::uint32_t>(what >> 32));
    // Relaxed: ordered after the acquires above; what it says decides, it hands nothing over.
    return (before & 1) == 0 && sequence_.load(std::memory_order_relaxed) == before;
  }

  // One writer at a time: the caller sees to it. An empty place (0 bytes) contains no address.
  void write(memory_place const& place) noexcept {
    // Relaxed: nobody else writes; the releases below keep it in front of them.
    std::uint64_t const before = sequence_.load(std::memory_order_relaxed);
    sequence_.store(before + 1, std::memory_order_relaxed);
    // Release: whoever reads one of these also sees the odd number.
    base_.store(place.base, std::memory_order_release);
    bytes_.store(place.bytes, std::memory_order_release);
    id_.store(place.id, std::memory_order_release);
    what_.store(static_cast<std::uint64_t>(static_cast<std::uint32_t>(place.device)) << 32 |
                    static_cast<std::uint64_t>(place.kind),
                std::memory_order_release);
    // Release: the even number comes with all of the fields.
    sequence_.store(before + 2, std::memory_order_release);
  }

  // Whether somebody asked for it lately. Relaxed: a hint for the choice of what to drop. Stored only where
  // it changes, so that readers do not take the line from each other.
  void note_use() noexcept {
    if (!used_.load(std::memory_order_relaxed)) used_.store(true, std::memory_order_relaxed);
  }
  [[nodiscard]] bool take_use() noexcept {
    bool const used = used_.load(std::memory_order_relaxed);
    used_.store(false, std::memory_order_relaxed);
    return used;
  }

 private:
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<std::uintptr_t> base_{0};
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::uint64_t> id_{0};
  std::atomic<std::uint64_t> what_{0};  // the device in the upper half, the kind in the lowest byte
  std::atomic<bool> used_{false};
};

}  // namespace collx::inline abi_1::transport::cuda_parts
