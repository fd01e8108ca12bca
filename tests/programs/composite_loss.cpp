// SPDX-License-Identifier: Apache-2.0
// Random programs on pretended hosts, in which a process is killed (programs/loss.hpp).
// component: tcp
// thread sanitizer: no, each rank is a process
#include "programs/loss.hpp"
#include "sample.hpp"
#include "transport/pretended_hosts.hpp"

TEST_CASE(
    "composite: where a rank of a random program is killed, all others are told, and nothing is wrong") {
  using transport = collx::transport::faulty<pretended::shm_and_tcp>;
  programs::survive_seeds(sample::is_sample ? 5 : 15, "test_programs_composite_loss",
                          [](programs::loss const& how, auto const& rank_main) {
                            collx::transport::tcp_settings chosen;
                            chosen.common = how.world.chosen;
                            return pretended::on_hosts<transport>(programs::drawn_hosts(how.world), rank_main,
                                                                  chosen);
                          });
}
