// SPDX-License-Identifier: Apache-2.0
// Random programs over TCP, in which a process is killed (programs/loss.hpp).
// component: tcp
// thread sanitizer: no, each rank is a process
#include "programs/loss.hpp"
#include "sample.hpp"
#include "watched_tcp.hpp"

TEST_CASE("tcp: where a rank of a random program is killed, all others are told, and nothing is wrong") {
  using transport = collx::transport::faulty<collx::transport::tcp>;
  (void)oracle::reference::get();  // once, and not in every process
  int lost = 0;
  seeds::for_each_seed(sample::is_sample ? 5 : 40, "test_programs_tcp_loss", [&](std::uint64_t seed) {
    return programs::survives(seed, lost, [](programs::loss const& how, auto const& rank_main) {
      collx::transport::tcp_settings chosen;
      chosen.common = how.world.chosen;
      return watched::on_tcp_processes<transport>(how.world.size, rank_main, chosen);
    });
  });
  MESSAGE("ranks that were killed: " << lost);
  CHECK(lost > 0);
}
