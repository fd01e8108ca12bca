// SPDX-License-Identifier: Apache-2.0
// What goes into a meeting over a network, and what comes out of it.
#pragma once

#include "collx/bootstrap/launcher.hpp"
#include "collx/bootstrap/messages.hpp"
#include "collx/core/array.hpp"
#include "collx/net/gate.hpp"
#include "collx/net/protection.hpp"

namespace collx::inline abi_1::bootstrap {

struct network_settings {
  std::uint64_t timeout_us = 30'000'000;  // COLLX_TIMEOUT_US: until everybody has come
  char const* interfaces = nullptr;       // COLLX_INTERFACE: "ib0,eth"; null: the one that leads to rank 0
  std::uint32_t flow_count = 1;  // connections of purpose link between two ranks; the same on all
  net::protection protects = net::protection::none;  // of those; COLLX_TLS of the meeting's, too
  std::uint64_t told = 0;  // a number that all ranks get to know: rank 0's
  net::socket_settings sockets;

  // Throws error (bad_argument) naming the variable that is wrong.
  [[nodiscard]] COLLX_COLD static network_settings from_environment() {
    network_settings chosen;
    chosen.timeout_us = transport::settings::from_environment().timeout_us;
    chosen.interfaces = std::getenv("COLLX_INTERFACE");
    chosen.protects = net::asks_for_tls() ? net::protection::tls : net::protection::none;
    chosen.sockets = net::socket_settings::from_environment(chosen.timeout_us);
    return chosen;
  }
};

// What a rank knows and holds when everybody has come. Can be moved.
struct network_membership {
  network_membership() = default;
  // With room for a line of the table for each rank.
  COLLX_COLD network_membership(rank_t own, rank_t ranks)
      : rank(own),
        size(ranks),
        addresses(static_cast<std::size_t>(ranks)),
        hosts(addresses.size()),
        machines(addresses.size()),
        processors(addresses.size()) {}

  COLLX_COLD void put(rank_t r, table_entry const& line) noexcept {
    auto const at = static_cast<std::size_t>(r);
    addresses[at] = line.gate;
    hosts[at] = line.host;
    machines[at] = line.machine;
    processors[at] = line.processors;
  }

  rank_t rank = 0, size = 1;
  array<net::address> addresses;  // where each rank's gate listens
  array<std::uint64_t> hosts;     // equal numbers: one host, and one network namespace
  array<std::uint64_t> machines;  // equal numbers: one machine
  array<processor_set::summary> processors;  // that each rank may use there
  net::gate gate;                 // this rank's; lets in purpose link
  net::credentials credentials;   // for callers to other gates
  std::uint64_t told = 0;         // rank 0's number, see network_settings
  // The connection to the rank above in the tree, none at rank 0; and to those below: ranks
  // first_tree_child(rank) and on. None if they were encrypted: those end with the meeting.
  net::owned_fd parent;
  array<net::owned_fd> children;
  std::uint64_t messages = 0;     // sent and received while meeting, handshakes included
  std::uint32_t dialled = 0;      // connections that this rank opened: at most 2
  std::uint64_t strangers = 0;    // that came to the gates of the meeting and were not let in
  std::uint64_t accepted = 0;     // that others opened to it: one for each child, and at rank 0 for each rank
};

}  // namespace collx::inline abi_1::bootstrap
