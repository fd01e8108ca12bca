// SPDX-License-Identifier: Apache-2.0
// connect<transport::tcp>(): processes of one host or of many, started by whatever launcher the site has.
// Needs OpenSSL (the CMake component collx::tcp).
#pragma once

#include "collx/bootstrap/connect.hpp"
#include "collx/bootstrap/hosts.hpp"
#include "collx/bootstrap/network.hpp"
#include "collx/transport/sockets/network_connector.hpp"
#include "collx/transport/tcp.hpp"

namespace collx::inline abi_1::bootstrap {

template <>
struct start_of<transport::tcp> {
  using settings = transport::tcp_settings;

  [[nodiscard]] COLLX_COLD static communicator<transport::tcp> connect(
      settings const& chosen, launch const& me = launch::from_environment()) {
    network_membership all = meet(chosen, me);
    rank_t const here = ranks_on_host_of(all.hosts, all.rank), each = ranks_per_host(all.hosts);
    auto world = transport::tcp::join(join_far(all, here, chosen));
    if (each < all.size) world.ranks_per_group(each);
    return world;
  }

  [[nodiscard]] COLLX_COLD static network_membership meet(settings const& chosen, launch const& me) {
    chosen.require_window(me.size);  // before anybody waits for this rank
    network_settings over = network_settings::from_environment();
    over.timeout_us = chosen.common.timeout_us;
    over.flow_count = static_cast<std::uint32_t>(chosen.limits.connections());
    over.protects = chosen.protection();
    return meet_over_network(me, over);
  }

  // Takes the gate and the addresses out of a membership.
  [[nodiscard]] COLLX_COLD static transport::tcp_world* join_far(network_membership& all, rank_t here,
                                                                 settings const& chosen) {
    transport::sockets::owned_connector links = new transport::sockets::network_connector(
        all.rank, static_cast<array<net::address>&&>(all.addresses), static_cast<net::gate&&>(all.gate),
        all.credentials, net::socket_settings::from_environment(chosen.common.timeout_us),
        chosen.common.timeout_us, chosen.protection());
    return new transport::tcp_world(all.rank, all.size, chosen, here,
                                    static_cast<transport::sockets::owned_connector&&>(links));
  }
};

}  // namespace collx::inline abi_1::bootstrap
