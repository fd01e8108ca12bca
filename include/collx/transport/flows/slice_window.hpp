// SPDX-License-Identifier: Apache-2.0
// The receiving half of spreading messages over several flows: slices carry 24-bit numbers (what fits beside
// a few flags in 32 bits that an RDMA write hands over) and come in any order; messages end in order.
#pragma once

#include <cstdint>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::transport::flows {

// Slices of one channel are numbered from 0 on, modulo 2^24.
inline constexpr std::uint32_t sequence_mask = (std::uint32_t{1} << 24) - 1;

class slice_window {
 public:
  // A sender has at most so many slices of one channel under way.
  static constexpr std::uint32_t capacity = 1024;

  explicit slice_window(std::uint32_t first = 0) noexcept : next_(first & sequence_mask) {}

  // Takes note of a slice; `ends`: it is the last of its message. False, and nothing changes, if there was
  // one of that number already or its turn is too far away: whoever sent it does not keep to the rules.
  [[nodiscard]] bool arrive(std::uint32_t sequence, bool ends) noexcept {
    std::uint32_t const ahead = (sequence - next_) & sequence_mask;
    if (ahead >= capacity || test(arrived_, sequence)) return false;
    set(arrived_, sequence);
    if (ends) set(ends_, sequence);
    while (test(arrived_, next_)) {
      messages_ += test(ends_, next_);
      clear(arrived_, next_);
      clear(ends_, next_);
      next_ = (next_ + 1) & sequence_mask;
    }
    return true;
  }

  // Messages of which every slice is here, and so is every slice of those before them; if the sender numbers
  // them as it should. Who does not trust it counts bytes besides (sockets/channel_group.hpp).
  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }

 private:
  static_assert((capacity & (capacity - 1)) == 0 && capacity < sequence_mask / 2);
  using bits = std::uint64_t[capacity / 64];

  [[nodiscard]] static bool test(bits const& of, std::uint32_t sequence) noexcept {
    return (of[sequence % capacity / 64] >> sequence % 64 & 1) != 0;
  }
  static void set(bits& of, std::uint32_t sequence) noexcept {
    of[sequence % capacity / 64] |= std::uint64_t{1} << sequence % 64;
  }
  static void clear(bits& of, std::uint32_t sequence) noexcept {
    of[sequence % capacity / 64] &= ~(std::uint64_t{1} << sequence % 64);
  }

  bits arrived_ = {};
  bits ends_ = {};
  std::uint32_t next_;
  std::uint64_t messages_ = 0;
};

}  // namespace collx::inline abi_1::transport::flows
