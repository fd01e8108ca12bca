// SPDX-License-Identifier: Apache-2.0
// How processes on several hosts find each other: meet_over_network().
#pragma once

#include "collx/bootstrap/launcher.hpp"
#include "collx/net/gate.hpp"

namespace collx::inline abi_1::bootstrap {

struct network_settings {
  std::uint64_t timeout_us = 30'000'000;    // COLLX_TIMEOUT_US: until everybody has come
  char const* interfaces = nullptr;         // COLLX_INTERFACE: "ib0,eth"; null: the one that leads to rank 0
  std::uint32_t flow_count = 1;             // connections of purpose link that a peer may open: flows 0 .. flow_count-1
  net::socket_settings sockets;

  // Throws error (bad_argument) naming the variable that is wrong.
  [[nodiscard]] COLLX_COLD static network_settings from_environment();
};

// What a rank knows and holds when everybody has come. Movable.
struct network_membership {
  rank_t rank = 0, size = 1;
  array<net::address> addresses;   // where each rank's gate listens
  array<std::uint64_t> hosts;      // equal numbers: the same host, in the same network namespace
  net::gate gate;                  // this rank's; lets in purpose link
  net::credentials credentials;    // for callers to other gates
  net::owned_fd parent;            // the connection to the rank above in the tree; none at rank 0
  array<net::owned_fd> children;   // to those below, in the order of their ranks
  array<rank_t> child_ranks;
  std::uint64_t messages = 0;      // sent and received while meeting, handshakes included
  std::uint32_t dialled = 0;       // connections opened while meeting: at most 2
};

// Called by every rank of the job. Blocks until everybody has come. Throws error: bad_argument (no secret, wrong
// variables, a refusal), timeout naming a rank that never came, peer_lost naming one that left.
[[nodiscard]] COLLX_COLD network_membership meet_over_network(launch const& me, network_settings const& chosen,
                                                   net::secret const& shared = net::secret::from_environment());

}  // namespace collx::inline abi_1::bootstrap
