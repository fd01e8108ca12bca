// SPDX-License-Identifier: Apache-2.0
// Random programs over TCP, in which a process is killed (programs/loss.hpp).
// component: tcp
// ctest: LABELS waits
// thread sanitizer: no, each rank is a process
#include "programs/loss.hpp"
#include "sample.hpp"
#include "watched_tcp.hpp"

TEST_CASE("tcp: where a rank of a random program is killed, all others are told, and nothing is wrong") {
  using transport = collx::transport::faulty<collx::transport::tcp>;
  programs::survive_seeds(sample::is_sample ? 5 : 40, "test_programs_tcp_loss",
                          [](programs::loss const& how, auto const& rank_main) {
                            collx::transport::tcp_settings chosen;
                            chosen.common = how.world.chosen;
                            return watched::on_tcp_processes<transport>(how.world.size, rank_main, chosen);
                          });
}
