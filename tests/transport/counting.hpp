// SPDX-License-Identifier: Apache-2.0
// Decorates a transport: counts what every rank sends, and of it what it, or the system, has stored already.
#pragma once

#include "collx/transport/concept.hpp"

namespace counting_detail {

template <class Endpoint>
class counting_endpoint : public Endpoint {
 public:
  using Endpoint::Endpoint;

  void send(int lane, collx::rank_t peer, std::byte const* payload, std::size_t bytes,
            collx::transport::handover how) noexcept {
    ++messages_;
    bytes_ += bytes;
    pushed_ += how == collx::transport::handover::pushed;
    posted_ += how == collx::transport::handover::posted;
    Endpoint::send(lane, peer, payload, bytes, how);
  }

  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t pushed() const noexcept { return pushed_; }
  [[nodiscard]] std::uint64_t posted() const noexcept { return posted_; }

 private:
  std::uint64_t messages_ = 0, bytes_ = 0, pushed_ = 0, posted_ = 0;
};

}  // namespace counting_detail

template <class Transport>
struct counting {
  static constexpr char const* name = "counting";
  using world = typename Transport::world;
  using endpoint = counting_detail::counting_endpoint<typename Transport::endpoint>;
  using membership = typename Transport::template membership_of<counting>;
};
