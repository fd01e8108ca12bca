// SPDX-License-Identifier: Apache-2.0
// connect<transport::composite<transport::shm, transport::tcp>>(): processes of many hosts, of which those of
// one host share memory. Needs OpenSSL (the CMake component collx::tcp).
#pragma once

#include "collx/bootstrap/tcp.hpp"
#include "collx/transport/composite.hpp"

namespace collx::inline abi_1::bootstrap {

// Where ranks of one host hand each other their shared memory: a socket that only this user can connect to,
// named after the meeting's random number and the host's first rank.
struct local_meeting_path {
  char text[108];
  local_meeting_path(std::uint64_t session, rank_t first) {
    int const length = std::snprintf(text, sizeof text, "%s/collx-%016llx-%d", local_folder(),
                                     static_cast<unsigned long long>(session), first);
    if (length >= static_cast<int>(sizeof text))
      throw error(status::bad_argument,
                  "TMPDIR is too long for the name of a socket; set it to a shorter path");
  }
};

template <>
struct start_of<transport::composite<transport::shm, transport::tcp>> {
  using settings = transport::tcp_settings;
  using transport_type = transport::composite<transport::shm, transport::tcp>;

  [[nodiscard]] COLLX_COLD static communicator<transport_type> connect(
      settings const& chosen, launch const& me = launch::from_environment()) {
    network_membership all = start_of<transport::tcp>::meet(chosen, me);
    rank_t const here = ranks_on_host_of(all.hosts, all.rank), each = ranks_per_host(all.hosts);
    settings const sized = start_of<transport::tcp>::agreed(chosen, all);
    auto* const near = join_host(all, here, sized.common);
    transport::tcp_world* far = nullptr;
    try {
      far = start_of<transport::tcp>::join_far(all, sized);
    } catch (...) {
      near->abort(status::aborted, all.rank, no_rank);  // ranks of this host must not wait for this one
      near->drop();
      throw;
    }
    auto world = transport_type::join(near, far, all.hosts);
    if (each < all.size) world.ranks_per_group(each);
    return world;
  }

 private:
  [[nodiscard]] static transport::shm_world* join_host(network_membership const& all, rank_t here,
                                                       transport::settings const& chosen) {
    rank_t first = no_rank, local = 0;
    for (rank_t r = 0; r < all.size; ++r) {
      if (all.hosts[static_cast<std::size_t>(r)] != all.hosts[static_cast<std::size_t>(all.rank)]) continue;
      if (first == no_rank) first = r;
      local += r < all.rank;
    }
    if (here == 1) {
      net::owned_fd const alone(transport::shared_memory::segment::create(1, chosen));
      return new transport::shm_world(alone.get(), 0);
    }
    local_meeting_path const path(all.credentials.job(), first);
    net::owned_fd const segment = meet_at(path.text, local, here, chosen);
    return new transport::shm_world(segment.get(), local);
  }
};

}  // namespace collx::inline abi_1::bootstrap
