// SPDX-License-Identifier: Apache-2.0
// A rank that lacks something for its part of a new group says so before the others count on it.
// component: tcp
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "collx/transport/sockets/membership.hpp"
#include "transport/without_descriptors.hpp"
#include "watched_tcp.hpp"

using communicator = collx::communicator<collx::transport::tcp>;

TEST_CASE("tcp: a split for which one rank has no descriptor fails at once on all, and leaves nothing") {
  auto const codes = watched::on_tcp_processes(3, [](communicator& comm) {
    { auto const connects_everybody = comm.split(0, 0); }
    for (int round = 0; round < 3; ++round) {
      std::optional<without_descriptors> limit;
      if (comm.rank() == 1) limit.emplace();
      try {
        (void)comm.split(0, 0);
        return 2;
      } catch (collx::error const& refused) {
        if (refused.code() != collx::status::system_failure) return 3;
        if (std::string(refused.what()).find("rank 1 has no descriptor left") == std::string::npos) return 4;
      }
    }
    if (comm.failure().code != collx::status::ok) return 5;
    auto group = comm.split(0, 0);
    int one = 1;
    collx::all_reduce(group, std::span(&one, 1), collx::sum);
    return one == 3 ? 0 : 6;
  });
  for (int const code : codes) CHECK(code == 0);
}
