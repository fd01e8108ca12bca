// SPDX-License-Identifier: Apache-2.0
// What groups of a composite communicator take of their host's memory is given back.
// component: tcp
#include "collx/transport/composite.hpp"

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "transport/pretended_hosts.hpp"

using communicator = collx::communicator<pretended::shm_and_tcp>;

TEST_CASE("composite: groups that come and go leave the heap of each host as it was") {
  collx::transport::tcp_settings chosen;
  chosen.common = {.timeout_us = 60'000'000, .staging_bytes = 4096, .heap_bytes = std::size_t{1} << 20};
  auto const codes = pretended::on_hosts(
      {1, 1, 2, 2},
      [](communicator& comm) {
        // One rank of each host: a group has less mail than room was made for, and with what a time leaves
        // behind, 250 of them would fill the heap.
        for (int round = 0; round < 300; ++round) {
          auto across = comm.split(comm.rank() % 2, comm.rank());
          int one = 1;
          collx::all_reduce(across, std::span(&one, 1), collx::sum);
          if (one != 2) return 2;
        }
        return 0;
      },
      chosen);
  for (int const code : codes) CHECK(code == 0);
}
