// SPDX-License-Identifier: Apache-2.0
// Lists of messages that one rank sends and receives at once, known at run time only: what an exchange
// executor works off. A list says which messages there are, and nothing of how far they have got, so
// several requests may work off the same list.
#pragma once

#include <cstdint>

#include "collx/core/array.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1::exec {

// A whole buffer that goes to a peer, or comes from one.
struct message {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  rank_t peer = no_rank;
  bool outgoing = false;
};

// Of so many elements; where that is more than memory can hold, a number that is so too.
[[nodiscard]] constexpr std::size_t bytes_or_most(std::size_t count, std::size_t element_bytes) noexcept {
  return element_bytes != 0 && count > PTRDIFF_MAX / element_bytes ? SIZE_MAX : count * element_bytes;
}

inline constexpr std::int32_t no_message = -1;

// The order among messages: those in one direction with one peer form a chain, and go one after the
// other; chains are independent. `heads`: the first of each chain. `next[i]`: what follows message i.
struct message_chains {
  std::int32_t const* heads = nullptr;
  std::int32_t head_count = 0;
  std::int32_t const* next = nullptr;
  std::int32_t count = 0;
};

inline constexpr std::int32_t first_message = 0;
// Of a list with one message.
inline constexpr message_chains single_message{&first_message, 1, &no_message, 1};

// Puts messages in order as they are appended; allocates when made.
class message_order {
 public:
  message_order(rank_t size, std::int32_t capacity)
      : last_(2 * static_cast<std::size_t>(size)),
        heads_(last_.size()),
        next_(static_cast<std::size_t>(capacity)) {
    clear();
  }

  [[nodiscard]] std::int32_t count() const noexcept { return count_; }
  [[nodiscard]] message_chains chains() const noexcept {
    return {heads_.data(), head_count_, next_.data(), count_};
  }

  void clear() noexcept {
    for (std::int32_t& last : last_) last = no_message;
    head_count_ = count_ = 0;
  }

  // Requires peer in 0 .. size-1, and fewer messages than the capacity.
  void append(rank_t peer, bool outgoing) noexcept {
    std::int32_t& last = last_[2 * static_cast<std::size_t>(peer) + outgoing];
    if (last == no_message) heads_[static_cast<std::size_t>(head_count_++)] = count_;
    else next_[static_cast<std::size_t>(last)] = count_;
    next_[static_cast<std::size_t>(count_)] = no_message;
    last = count_++;
  }

 private:
  array<std::int32_t> last_;  // per peer: of those from it, of those to it
  array<std::int32_t> heads_, next_;
  std::int32_t head_count_ = 0, count_ = 0;
};

// How far the current message of one chain has got.
struct chain_state {
  message what{};
  std::int32_t index = no_message;
  bool expected = false;  // a transport that is not mapped knows where the next piece is wanted
  std::size_t done_bytes = 0, piece_bytes = 0;
};

}  // namespace collx::inline abi_1::exec
