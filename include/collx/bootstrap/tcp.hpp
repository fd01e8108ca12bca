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
    rank_t const each = ranks_per_host(all.hosts);
    auto world = transport::tcp::join(join_far(all, agreed(chosen, all)));
    if (each < all.size) world.ranks_per_group(each);
    return world;
  }

  [[nodiscard]] COLLX_COLD static network_membership meet(settings const& chosen, launch const& me) {
    network_settings over = network_settings::from_environment();
    settings const sized = chosen.for_ranks(me.size, net::are_paced(over.sockets));
    (void)sized.checked(me.size);  // before anybody waits for this rank
    over.timeout_us = chosen.common.timeout_us;
    over.flow_count = static_cast<std::uint32_t>(chosen.limits.connections());
    over.protects = chosen.protection();
    over.told = (sized.common.staging_bytes + staging_unit - 1) / staging_unit * staging_unit;
    if (over.told > staging_most)
      throw_error(status::bad_argument, "common.staging_bytes is %zu; set it to at most %llu",
                  sized.common.staging_bytes, static_cast<unsigned long long>(staging_most));
    return meet_over_network(me, over);
  }

  // What all ranks know alike. Rank 0's size of staging memory holds for all: who cuts messages otherwise is
  // not understood. What comes over the network is no size before it has been looked at. Throws error
  // (mismatch, bad_argument).
  [[nodiscard]] COLLX_COLD static settings agreed(settings chosen, network_membership const& all) {
    if (all.told == 0 || all.told > staging_most || all.told % staging_unit != 0)
      throw_error(status::mismatch,
                  "meeting, rank %d of %d: rank 0 says that staging memory has %llu bytes; use one version",
                  all.rank, all.size, static_cast<unsigned long long>(all.told));
    chosen.common.staging_bytes = static_cast<std::size_t>(all.told);
    chosen.common.sharing = share_processors(all.machines, all.processors);
    return chosen.checked(all.size, "COLLX_TCP_SLICE_BYTES", "rank 0's COLLX_STAGING_BYTES");
  }

  // Takes the gate and the addresses out of a membership.
  [[nodiscard]] COLLX_COLD static transport::tcp_world* join_far(network_membership& all,
                                                                 settings const& chosen) {
    auto* const links = new transport::sockets::network_connector(
        all.rank, static_cast<array<net::address>&&>(all.addresses), static_cast<net::gate&&>(all.gate),
        all.credentials, net::socket_settings::from_environment(chosen.common.timeout_us),
        chosen.common.timeout_us, chosen.protection());
    transport::sockets::owned_connector owned = links;
    links->turned_away_before(all.strangers);
    return new transport::tcp_world(all.rank, all.size, chosen,
                                    static_cast<transport::sockets::owned_connector&&>(owned));
  }

 private:
  // Halves of it are whole lines.
  static constexpr std::uint64_t staging_unit = 128, staging_most = std::uint64_t{1} << 30;
};

}  // namespace collx::inline abi_1::bootstrap
