// SPDX-License-Identifier: Apache-2.0
// Messages of the symbolic run, in order per ordered pair of ranks. Knows nothing of values.
#pragma once

#include "collx/schedule/verify/causality.hpp"

namespace collx::inline abi_1::detail {

struct message {
  rank_t sender = 0;
  rank_t receiver = 0;
  std::int32_t sent_at = 0;    // the sender's step
  std::int32_t taken_at = -1;  // the receiver's step; -1 while in flight
  std::int32_t payload = 0;    // index of the first of `count` values
  std::int32_t count = 0;
  std::int32_t round = 0;
  std::int32_t next = -1;
  stamp sent{};
};

class mail {
 public:
  constexpr explicit mail(rank_t size) : size_(size), queues_(std::int64_t{size} * size) {}

  [[nodiscard]] constexpr std::int32_t in_flight(rank_t sender, rank_t receiver) const {
    return queue_of(sender, receiver).count;
  }

  [[nodiscard]] constexpr message const& operator[](std::int32_t id) const { return messages_[id]; }

  // The number that the next message will have.
  [[nodiscard]] constexpr std::int32_t next() const { return messages_.size(); }

  constexpr std::int32_t post(message const& m) {
    std::int32_t const id = messages_.push(m);
    queue& q = queues_[std::int64_t{m.sender} * size_ + m.receiver];
    if (q.count++ == 0) q.head = id;
    else messages_[q.tail].next = id;
    q.tail = id;
    return id;
  }

  // Requires in_flight(sender, receiver) > 0.
  constexpr std::int32_t take(rank_t sender, rank_t receiver, std::int32_t step) {
    queue& q = queues_[std::int64_t{sender} * size_ + receiver];
    std::int32_t const id = q.head;
    q.head = messages_[id].next;
    --q.count;
    messages_[id].taken_at = step;
    return id;
  }

  // A message that nobody took, or -1.
  [[nodiscard]] constexpr std::int32_t leftover() const {
    for (std::int32_t id = 0; id < messages_.size(); ++id)
      if (messages_[id].taken_at < 0) return id;
    return -1;
  }

 private:
  struct queue {
    std::int32_t head = -1;
    std::int32_t tail = -1;
    std::int32_t count = 0;
  };

  [[nodiscard]] constexpr queue const& queue_of(rank_t sender, rank_t receiver) const {
    return queues_[std::int64_t{sender} * size_ + receiver];
  }

  rank_t size_;
  table<queue> queues_;
  table<message> messages_;
};

}  // namespace collx::inline abi_1::detail
