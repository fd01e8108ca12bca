// SPDX-License-Identifier: Apache-2.0
// Two-level algorithms where their levels are what they are for: over sockets, and on hosts that share no
// memory. (hierarchical.cpp: mailbox, threads and processes of one host.)
// component: tcp
// sanitizers: no, half a minute, for executors and transports that the matrices run under them
#include <doctest/doctest.h>

#include "collective/two_levels.hpp"
#include "collx/collx.hpp"
#include "transport/pretended_hosts.hpp"
#include "transport/wired.hpp"

namespace {

using collx::rank_t;
using few = collx::type_list<collx::algo::hierarchical<collx::algo::direct_one_shot, collx::algo::ring>,
                             collx::algo::hierarchical<collx::algo::ring, collx::algo::direct_one_shot>>;

collx::transport::tcp_settings small_staging() {
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = cases::staging_bytes;
  return chosen;
}

}  // namespace

TEST_CASE("hierarchical: over sockets") {
  (void)oracle::reference::get();
  for (auto const& [size, per_group] : {std::pair<rank_t, rank_t>{2, 2}, {4, 2}, {6, 3}, {6, 2}})
    wired::on_wired_threads(size, small_staging(),
                            [per_group = per_group](collx::communicator<collx::transport::tcp>& comm) {
                              two_levels::walk<few>(comm, per_group);
                            });
}

TEST_CASE("hierarchical: hosts in shared memory, and messages between them") {
  (void)oracle::reference::get();
  using hosts = std::vector<std::uint64_t>;
  // Groups that are the hosts, and such as are not: the result is the same.
  for (auto const& host_of : {hosts{1, 1, 2, 2}, hosts{1, 1, 2, 2, 3, 3}, hosts{1, 2, 1, 2}})
    for (int const code : pretended::on_hosts(
             host_of,
             [](collx::communicator<pretended::shm_and_tcp>& comm) { two_levels::walk<few>(comm, 2); },
             small_staging()))
      CHECK(code == 0);
}
