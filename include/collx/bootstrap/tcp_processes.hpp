// SPDX-License-Identifier: Apache-2.0
// Runs ranks as processes of this host that talk over TCP, on its loopback interface: for trying out, for
// tests and for measuring. Ranks of many hosts are started by a launcher (bootstrap/connect.hpp).
#pragma once

#include "collx/bootstrap/processes.hpp"
#include "collx/transport/sockets/network_connector.hpp"
#include "collx/transport/tcp.hpp"

namespace collx::inline abi_1::bootstrap {

// As on_processes(). Every rank listens on a port of its own, which all know because they are forked from one
// process. The secret is COLLX_SECRET_FILE's or COLLX_SECRET's; none is needed on loopback. `Transport`: tcp
// or a decorator of it. `version`: 4 or 6, of the internet protocol.
template <class Transport = transport::tcp, class RankMain>
exit_codes on_tcp_processes(
    rank_t size, RankMain&& rank_main,
    transport::tcp_settings const& chosen = transport::tcp_settings::from_environment(),
    std::uint8_t version = 4) {
  detail::require_local_size(size);
  auto const sockets = net::socket_settings::from_environment(chosen.common.timeout_us);
  net::credentials const mine(net::secret::from_environment(), static_cast<std::uint64_t>(getpid()));
  auto const count = static_cast<std::size_t>(size);
  array<net::owned_fd> doors(count);
  array<net::address> addresses(count);
  for (std::size_t r = 0; r < count; ++r) {
    doors[r] = net::listen_at(net::address::loopback(0, version), sockets);
    addresses[r] = net::local_address(doors[r].get());
  }
  auto const join = [&](rank_t rank) {
    net::owned_fd door = static_cast<net::owned_fd&&>(doors[static_cast<std::size_t>(rank)]);
    for (net::owned_fd& other : doors) other.reset();  // a rank that is gone must refuse
    array<net::address> known(count);
    for (std::size_t r = 0; r < count; ++r) known[r] = addresses[r];
    net::expectation const whom{rank, size, net::mask_of(net::purpose::link),
                                static_cast<std::uint32_t>(chosen.limits.connections())};
    auto* const links = new transport::sockets::network_connector(
        rank, static_cast<array<net::address>&&>(known),
        net::gate(static_cast<net::owned_fd&&>(door), mine, whom, sockets), mine, sockets,
        chosen.common.timeout_us);
    return transport::tcp::join<Transport>(rank, size, chosen, size, links);
  };
  // Only the children listen.
  struct closed_after_fork {
    array<net::owned_fd>& doors;
    void operator()() const noexcept {
      for (net::owned_fd& door : doors) door.reset();
    }
  };
  return detail::fork_ranks(size, join, rank_main, closed_after_fork{doors});
}

}  // namespace collx::inline abi_1::bootstrap
