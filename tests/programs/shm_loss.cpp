// SPDX-License-Identifier: Apache-2.0
// Random programs on shared memory, in which a process is killed (programs/loss.hpp).
// thread sanitizer: no, each rank is a process
#include "programs/loss.hpp"
#include "sample.hpp"
#include "watched.hpp"

TEST_CASE("shm: where a rank of a random program is killed, all others are told, and nothing is wrong") {
  using transport = collx::transport::faulty<collx::transport::shm>;
  programs::survive_seeds(sample::is_sample ? 10 : 60, "test_programs_shm_loss",
                          [](programs::loss const& how, auto const& rank_main) {
                            return watched::on_processes<transport>(how.world.size, rank_main,
                                                                    how.world.chosen);
                          });
}
