// SPDX-License-Identifier: Apache-2.0
// One lane between this rank and one peer, for transports that post messages to a library which matches them
// (an MPI, UCX): what is on its way out, and the one message that is wanted.
#pragma once

#include <cstddef>

#include "collx/core/status.hpp"

namespace collx::inline abi_1::transport::matched {

// All zero is how it begins: it lies in pages that are taken when touched.
struct channel {
  // Sends that may be in flight. Every `synchronous_every`-th is a synchronous one, which ends when the
  // receiver has asked for the message; since messages are matched in order, it has asked for all earlier
  // ones too.
  static constexpr std::uint64_t window = 16, synchronous_every = 8;
  // So many messages may be unmatched whatever the sender knows.
  static constexpr std::uint64_t depth = window - synchronous_every + 1;
  static constexpr std::size_t inline_bytes = 64;

  struct post {
    bool open;  // the library may still read the payload
    bool synchronous;
    bool holds_call;  // the call waits until it has ended
    std::byte small[inline_bytes];
  };

  std::uint64_t sent, handed;  // handed: sends that have ended, in order
  std::uint64_t matched;       // those that the receiver is known to have asked for
  post posts[window];

  std::byte* to;             // of the message that is wanted, or is here
  std::size_t wanted_bytes;  // where it goes straight to its place
  std::size_t bytes;         // of the one that is here
  bool here;
  status trouble;  // ok, or why nothing will come or go any more

  [[nodiscard]] post& post_of(std::uint64_t message) noexcept { return posts[message % window]; }
};

}  // namespace collx::inline abi_1::transport::matched
