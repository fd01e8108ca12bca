// SPDX-License-Identifier: Apache-2.0
// Runs ranks of the mailbox transport in this thread: a seed decides who moves next.
#pragma once

#include "collx/transport/mailbox.hpp"

namespace collx::inline abi_1::bootstrap {

// All ranks of one mailbox world. `Transport`: mailbox or a decorator of it.
template <class Transport = transport::mailbox>
class mailbox_ranks {
 public:
  mailbox_ranks(rank_t size, std::uint64_t seed, transport::settings const& chosen = {},
                std::uint64_t depth = 2)
      : mailbox_ranks() {
    // It exists since the other constructor has ended: where memory ends, it is destroyed.
    world_ = new transport::mailbox_world(size, seed, chosen, depth);
    members_ = array<communicator<Transport>*>(static_cast<std::size_t>(size));
    auto& everybody = *world_->open(size);
    for (rank_t r = 0; r < size; ++r)
      members_[static_cast<std::size_t>(r)] = new communicator<Transport>(join(everybody, r));
  }
  mailbox_ranks(mailbox_ranks const&) = delete;
  ~mailbox_ranks() {
    for (communicator<Transport>* member : members_) delete member;
    if (world_ != nullptr) world_->drop();
  }

  [[nodiscard]] communicator<Transport>& operator[](rank_t rank) noexcept {
    return *members_[static_cast<std::size_t>(rank)];
  }

  // Tests one request per rank, in an order the seed chooses, until all are done, and returns the
  // first outcome that is not ok. timeout after `looks_max` looks: with nothing lost, a deadlock.
  template <class Request>
  [[nodiscard]] status drive(array<Request>& requests, std::uint64_t looks_max = 50'000'000) noexcept {
    std::size_t open = requests.size();
    array<bool> done(open);
    status outcome = status::ok;
    for (std::uint64_t looks = 0; open != 0; ++looks) {
      if (looks == looks_max) return status::timeout;
      std::size_t const r = world_->random().below(static_cast<std::uint32_t>(requests.size()));
      if (done[r]) continue;
      status const now = requests[r].try_test();
      if (now == status::pending) continue;
      done[r] = true;
      --open;
      if (outcome == status::ok) outcome = now;
    }
    return outcome;
  }

 private:
  mailbox_ranks() = default;

  [[nodiscard]] communicator<Transport> join(transport::mailbox_detail::group& everybody, rank_t rank) {
    auto* const engine = Transport::membership::join_world(*world_, everybody, rank);
    world_->keep();
    return {world_, engine};
  }

  transport::mailbox_world* world_ = nullptr;
  array<communicator<Transport>*> members_;
};

}  // namespace collx::inline abi_1::bootstrap
