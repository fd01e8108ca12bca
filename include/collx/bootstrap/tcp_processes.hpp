// SPDX-License-Identifier: Apache-2.0
// Runs ranks as processes of this host that talk over TCP, on its loopback interface: for trying out, for
// tests and for measuring. Ranks of many hosts are started by a launcher (bootstrap/connect.hpp).
#pragma once

#include "collx/bootstrap/processes.hpp"
#include "collx/transport/sockets/network_connector.hpp"
#include "collx/transport/tcp.hpp"

namespace collx::inline abi_1::bootstrap {

namespace detail {

// Where each rank of a job listens, on the loopback interface; all know it because they are forked from one
// process.
class loopback_doors {
 public:
  COLLX_COLD loopback_doors(rank_t size, transport::tcp_settings const& chosen, std::uint8_t version = 4)
      : sockets_(net::socket_settings::from_environment(chosen.common.timeout_us)),
        mine_(net::secret::from_environment(), static_cast<std::uint64_t>(getpid())),
        doors_(static_cast<std::size_t>(size)),
        addresses_(static_cast<std::size_t>(size)),
        chosen_(chosen),
        protects_(chosen.protection()) {
    net::require_secret(protects_, mine_.has_secret());
    for (std::size_t r = 0; r < doors_.size(); ++r) {
      doors_[r] = net::listen_at(net::address::loopback(0, version), sockets_);
      addresses_[r] = net::local_address(doors_[r].get());
    }
  }

  // In the process of a rank, once: its connections, for a world that takes them over.
  [[nodiscard]] COLLX_COLD transport::sockets::connector* connector_of(rank_t rank) {
    net::owned_fd door = static_cast<net::owned_fd&&>(doors_[static_cast<std::size_t>(rank)]);
    close();  // a rank that is gone must refuse
    array<net::address> known(addresses_.size());
    for (std::size_t r = 0; r < known.size(); ++r) known[r] = addresses_[r];
    net::expectation const whom{rank, static_cast<rank_t>(known.size()), net::mask_of(net::purpose::link),
                                static_cast<std::uint32_t>(chosen_.limits.connections()), protects_};
    return new transport::sockets::network_connector(
        rank, static_cast<array<net::address>&&>(known),
        net::gate(static_cast<net::owned_fd&&>(door), mine_, whom, sockets_), mine_, sockets_,
        chosen_.common.timeout_us, protects_);
  }

  // In the process that has forked the ranks: only they listen.
  void close() noexcept {
    for (net::owned_fd& door : doors_) door.reset();
  }

 private:
  net::socket_settings sockets_;
  net::credentials mine_;
  array<net::owned_fd> doors_;
  array<net::address> addresses_;
  transport::tcp_settings const& chosen_;
  net::protection protects_;
};

}  // namespace detail

// As on_processes(). Every rank listens on a port of its own. The secret is COLLX_SECRET_FILE's or
// COLLX_SECRET's; none is needed on loopback, but with TLS. `Transport`: tcp or a decorator of it. `version`:
// 4 or 6, of the internet protocol.
template <class Transport = transport::tcp, class RankMain>
[[nodiscard]] exit_codes on_tcp_processes(
    rank_t size, RankMain&& rank_main,
    transport::tcp_settings const& chosen = transport::tcp_settings::from_environment(),
    std::uint8_t version = 4) {
  transport::require_size("on_tcp_processes", size);
  auto const sockets = net::socket_settings::from_environment(chosen.common.timeout_us);
  transport::tcp_settings sized = chosen.for_ranks(size, net::are_paced(sockets));
  sized.common.sharing |= size > static_cast<rank_t>(processor_set::of_this_thread().count);
  (void)sized.checked(size);
  detail::loopback_doors doors(size, sized, version);
  return detail::fork_ranks(
      size,
      [&](rank_t rank) {
        return transport::tcp::join<Transport>(rank, size, sized, doors.connector_of(rank));
      },
      rank_main, [&] { doors.close(); });
}

}  // namespace collx::inline abi_1::bootstrap
