// SPDX-License-Identifier: Apache-2.0
// connect(): the world communicator of a process that a launcher started.
#pragma once

#include "collx/bootstrap/launcher.hpp"
#include "collx/bootstrap/rendezvous.hpp"
#include "collx/transport/shm.hpp"

namespace collx::inline abi_1 {

namespace bootstrap {

// What transport::shm needs of a launch with more than one rank. Throws error naming what is missing or
// wrong.
COLLX_COLD inline void require_one_host(launch const& me) {
  char text[300];
  if (me.local_rank != no_rank && me.local_rank != me.rank) {
    std::snprintf(
        text, sizeof text,
        "%s differs from %s: transport::shm joins ranks of one host only; start all ranks on one host",
        me.by->local_rank, me.by->rank);
    throw error(status::not_supported, text);
  }
  if (me.rendezvous == nullptr && me.size > 1)
    throw error(status::bad_argument,
                "COLLX_RENDEZVOUS is not set; set it, on every rank, to the path of a socket "
                "that rank 0 may create, one of its own for each job");
}

}  // namespace bootstrap

// The communicator of all processes of this job. Every rank calls it once; returns when all have.
// Throws error: bad_argument for a wrong environment, timeout naming a rank that never came.
template <class Transport>
[[nodiscard]] COLLX_COLD communicator<Transport> connect(
    transport::settings const& chosen = transport::settings::from_environment()) {
  static_assert(std::is_same_v<Transport, transport::shm>,
                "collx: connect() starts processes of one host: "
                "connect<transport::shm>()");
  bootstrap::launch const me = bootstrap::launch::from_environment();
  bootstrap::require_one_host(me);
  if (me.size == 1) {
    net::owned_fd const alone(transport::shared_memory::segment::create(1, chosen));
    return transport::shm::join(alone.get(), 0);
  }
  net::owned_fd const segment = bootstrap::meet_at(me.rendezvous, me.rank, me.size, chosen);
  return transport::shm::join(segment.get(), me.rank);
}

}  // namespace collx::inline abi_1
