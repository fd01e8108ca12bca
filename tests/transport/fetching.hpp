// SPDX-License-Identifier: Apache-2.0
// A transport::shm that a test can watch fetch and post, and make fail at it.
#pragma once

#include <stdexcept>

#include "collx/transport/shm.hpp"
#include "transport/system_copies.hpp"

// Counts what it fetches and posts, and fails when it is told to.
template <class Endpoint>
class fetching_endpoint : public Endpoint {
 public:
  using Endpoint::Endpoint;
  collx::status fetch(int lane, collx::rank_t peer, std::size_t from, std::byte* to,
                      std::size_t bytes) noexcept {
    ++fetched;
    return fails ? collx::status::system_failure : Endpoint::fetch(lane, peer, from, to, bytes);
  }
  collx::status post(collx::rank_t peer, std::uint64_t to, std::byte const* from,
                     std::size_t bytes) noexcept {
    ++posted;
    return fails ? collx::status::system_failure : Endpoint::post(peer, to, from, bytes);
  }
  int fetched = 0, posted = 0;
  bool fails = false;
};

// Whether all ranks of a communicator have found that they may read each other's memory. Each finds out as it
// joins, so that it is known to all that have been in a barrier.
template <class Communicator>
[[nodiscard]] bool found_permission(Communicator& comm) {
  return comm.engine().endpoint().space().fetched_bytes_min() != static_cast<std::size_t>(-1);
}

// Whether they may, as the system says; the transport must have found the same.
template <class Communicator>
[[nodiscard]] bool permitted(Communicator& comm) {
  if (found_permission(comm) != system_copies::permitted)
    throw std::runtime_error(system_copies::permitted ? "a single copy is permitted, and was not found so"
                                                      : "a single copy is not permitted, and was found so");
  return system_copies::permitted;
}

struct fetching {
  using world = collx::transport::shm::world;
  using endpoint = fetching_endpoint<collx::transport::shm::endpoint>;
  using membership = collx::transport::shm::membership_of<fetching>;
};
