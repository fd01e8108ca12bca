// SPDX-License-Identifier: Apache-2.0
// Ranks as processes of this host that take themselves for those of several: each pretended host has shared
// memory of its own, and between them there is TCP.
#pragma once

#include <algorithm>
#include <vector>

#include "collx/bootstrap/tcp_processes.hpp"
#include "collx/transport/composite.hpp"
#include "watched.hpp"

namespace pretended {

using collx::rank_t;
namespace transport = collx::transport;
using shm_and_tcp = transport::composite<transport::shm, transport::tcp>;

// `Transport`: shm_and_tcp or a decorator of it. `host_of[r]`: any number, the same for ranks of one host.
// Calls rank_main(communicator&) in every process, under a watchdog.
template <class Transport = shm_and_tcp, class RankMain>
collx::bootstrap::exit_codes on_hosts(std::vector<std::uint64_t> const& host_of, RankMain const& rank_main,
                                      transport::tcp_settings chosen) {
  namespace detail = collx::bootstrap::detail;
  auto const size = static_cast<rank_t>(host_of.size());
  chosen.common.sharing |= size > static_cast<rank_t>(collx::processor_set::of_this_thread().count);
  auto const on_host_of = [&](rank_t rank, rank_t before) {
    std::uint64_t const host = host_of[static_cast<std::size_t>(rank)];
    return static_cast<rank_t>(std::count(host_of.begin(), host_of.begin() + before, host));
  };
  detail::loopback_doors doors(size, chosen);
  std::vector<collx::net::owned_fd> memory(host_of.size());  // of a host, at its first rank
  for (rank_t r = 0; r < size; ++r)
    if (on_host_of(r, r) == 0)
      memory[static_cast<std::size_t>(r)].reset(
          transport::shared_memory::segment::create(on_host_of(r, size), chosen.common));
  auto const join = [&](rank_t rank) {
    rank_t first = 0;
    while (host_of[static_cast<std::size_t>(first)] != host_of[static_cast<std::size_t>(rank)]) ++first;
    int const segment = memory[static_cast<std::size_t>(first)].get();
    auto space = watched::layout_of_its_own(rank, segment);
    auto* const near = new transport::shm_world(segment, on_host_of(rank, rank));
    space.reset();
    auto* const far = new transport::tcp_world(rank, size, chosen, doors.connector_of(rank));
    collx::array<std::uint64_t> hosts(host_of.size());
    std::copy(host_of.begin(), host_of.end(), hosts.begin());
    return shm_and_tcp::join<Transport>(near, far, hosts);
  };
  watched::limit_of_parent const limit;
  auto main_of_rank = watched::in_process(rank_main);
  return detail::fork_ranks(size, join, main_of_rank, [&] { doors.close(); });
}

}  // namespace pretended
