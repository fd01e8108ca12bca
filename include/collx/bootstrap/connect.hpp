// SPDX-License-Identifier: Apache-2.0
// connect(): the world communicator of a process that a launcher started.
#pragma once

#include "collx/bootstrap/rendezvous.hpp"
#include "collx/transport/shm.hpp"

namespace collx::inline abi_1 {

namespace bootstrap {

// What the environment says: RANK, WORLD_SIZE (as torchrun sets them) and COLLX_RENDEZVOUS.
// LOCAL_RANK is only checked: on one host it equals RANK.
struct launch {
  rank_t rank = 0;
  rank_t size = 1;
  char const* rendezvous = nullptr;

  // With neither RANK nor WORLD_SIZE there is one rank. Throws error (bad_argument) naming what is
  // missing or wrong.
  [[nodiscard]] COLLX_COLD static launch from_environment() {
    launch found;
    bool const has_rank = std::getenv("RANK") != nullptr, has_size = std::getenv("WORLD_SIZE") != nullptr;
    if (!has_rank && !has_size) return found;
    if (has_rank != has_size)
      throw error(status::bad_argument,
                  has_rank ? "RANK is set but WORLD_SIZE is not; set both, or neither for one rank"
                           : "WORLD_SIZE is set but RANK is not; set both, or neither for one rank");
    found.size = static_cast<rank_t>(environment::number("WORLD_SIZE", 1, 1, transport::size_max));
    found.rank = static_cast<rank_t>(environment::number("RANK", 0, 0, found.size - 1));
    auto const local = static_cast<rank_t>(environment::number("LOCAL_RANK", found.rank, 0, found.size - 1));
    if (local != found.rank)
      throw error(status::not_supported,
                  "LOCAL_RANK differs from RANK: transport::shm joins ranks of one host only; "
                  "start all ranks on one host");
    found.rendezvous = std::getenv("COLLX_RENDEZVOUS");
    if (found.rendezvous == nullptr && found.size > 1)
      throw error(status::bad_argument,
                  "COLLX_RENDEZVOUS is not set; set it, on every rank, to the path of a socket "
                  "that rank 0 may create, one of its own for each job");
    return found;
  }
};

}  // namespace bootstrap

// The communicator of all processes of this job. Every rank calls it once; returns when all have.
// Throws error: bad_argument for a wrong environment, timeout naming a rank that never came.
template <class Transport>
[[nodiscard]] COLLX_COLD communicator<Transport> connect(
    transport::settings const& chosen = transport::settings::from_environment()) {
  static_assert(std::is_same_v<Transport, transport::shm>, "collx: connect() starts processes of one host: "
                                                           "connect<transport::shm>()");
  bootstrap::launch const me = bootstrap::launch::from_environment();
  if (me.size == 1) {
    net::owned_fd const alone(transport::shared_memory::segment::create(1, chosen));
    return transport::shm::join(alone.get(), 0);
  }
  net::owned_fd const segment = bootstrap::meet_at(me.rendezvous, me.rank, me.size, chosen);
  return transport::shm::join(segment.get(), me.rank);
}

}  // namespace collx::inline abi_1
