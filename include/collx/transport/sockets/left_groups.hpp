// SPDX-License-Identifier: Apache-2.0
// Communicators that this process has left, and what comes for them all the same: from a peer whose call this
// rank never made, or refused. Such a message stands in its connection in front of what is for others, so it
// is read, and thrown away.
#pragma once

#include "collx/transport/sockets/flow.hpp"
#include "collx/transport/zeroed_pages.hpp"

namespace collx::inline abi_1::transport::sockets {

// Guarded by the world's lock.
class left_groups {
 public:
  // So many are remembered, the last ones: what comes for one that was left long ago waits as if that were
  // still to be made. Numbers of communicators are never used again.
  static constexpr std::size_t remembered = 256;

  // Throws error (out_of_memory). The memory is address space until something is thrown there.
  COLLX_COLD explicit left_groups(std::size_t message_bytes_max) : nowhere_(message_bytes_max) {}

  COLLX_COLD void add(std::uint64_t communicator) noexcept { all_[next_++ % remembered] = communicator; }
  [[nodiscard]] COLLX_COLD bool holds(std::uint64_t communicator) const noexcept {
    for (std::uint64_t const each : all_)
      if (each == communicator) return communicator != none;
    return false;
  }

  // A place that any slice fits into, and nobody looks at.
  [[nodiscard]] std::byte* nowhere() noexcept { return nowhere_.data(); }
  // Of a data frame for one of them; see flow::read().
  [[nodiscard]] COLLX_COLD flow::answer drop(frame const& what, std::byte*& to) noexcept {
    to = nowhere();
    return what.slice_bytes <= nowhere_.size() ? flow::answer::take : flow::answer::refuse;
  }

 private:
  static constexpr std::uint64_t none = 0;  // no communicator's number

  zeroed_pages nowhere_;
  std::uint64_t all_[remembered] = {};
  std::size_t next_ = 0;
};

}  // namespace collx::inline abi_1::transport::sockets
