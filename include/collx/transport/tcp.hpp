// SPDX-License-Identifier: Apache-2.0
// Ranks are processes, of one host or of many, that send each other messages over TCP.
#pragma once

#include "collx/transport/of_all.hpp"
#include "collx/transport/sockets/membership.hpp"
#include "collx/tune/message_algorithms.hpp"

namespace collx::inline abi_1::transport {

struct tcp {
  static constexpr char const* name = "tcp";
  using world = tcp_world;
  using endpoint = tcp_endpoint;
  template <class As>
  using membership_of = sockets::membership<As>;
  using membership = membership_of<tcp>;

  // Rank `rank` of `size`, which talks to the others over what `connector` brings; takes it over. `As`: the
  // transport itself, or a decorator of it. Throws error when the system refuses memory or descriptors, or
  // std::bad_alloc.
  template <class As = tcp>
  [[nodiscard]] static communicator<As> join(rank_t rank, rank_t size, tcp_settings const& chosen,
                                             sockets::owned_connector connector) {
    return join<As>(
        new tcp_world(rank, size, chosen, static_cast<sockets::owned_connector&&>(connector)));
  }

  // The communicator of everybody in a world that nobody else refers to: takes it over, also where this
  // throws.
  template <class As = tcp>
  [[nodiscard]] static communicator<As> join(tcp_world* world) {
    return of_all<As>(world, [&] { return As::membership::join_world(*world); });
  }
};

}  // namespace collx::inline abi_1::transport
