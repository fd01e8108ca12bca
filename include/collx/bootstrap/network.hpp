// SPDX-License-Identifier: Apache-2.0
// How processes on several hosts find each other: meet_over_network().
#pragma once

#include "collx/bootstrap/meeting.hpp"

namespace collx::inline abi_1::bootstrap {

// Called by every rank of a job; returns when everybody has come. Where rank 0 is to be found, the
// environment says (meeting_place::of). Each rank opens at most two connections, and receives 48 bytes for
// each rank; rank 0 serves every rank once. Throws error: bad_argument (wrong variables, no secret, refused
// by rank 0), timeout naming a rank that never came, peer_lost naming one that left, system_failure.
// docs/bootstrap.md has the whole of it.
[[nodiscard]] COLLX_COLD inline network_membership meet_over_network(
    launch const& me, network_settings const& chosen,
    net::secret const& shared = net::secret::from_environment()) {
  meeting one(me, chosen, shared);
  return me.size == 1 ? one.alone() : me.rank == 0 ? one.host() : one.join();
}

}  // namespace collx::inline abi_1::bootstrap
