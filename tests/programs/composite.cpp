// SPDX-License-Identifier: Apache-2.0
// Random programs (programs/program.hpp) whose ranks are processes on pretended hosts: some of them share
// memory, and between the others there is TCP.
// component: tcp
// thread sanitizer: no, each rank is a process, and threads.cpp and tcp.cpp run the same programs
#include "programs/program.hpp"
#include "sample.hpp"
#include "transport/pretended_hosts.hpp"

TEST_CASE("composite: random programs give what they must") {
  (void)oracle::reference::get();  // once, and not in every process
  seeds::for_each_seed(sample::is_sample ? 10 : 25, "test_programs_composite", [](std::uint64_t seed) {
    programs::world_of const world(seed);
    collx::transport::tcp_settings chosen;
    chosen.common = world.chosen;
    for (int const code :
         pretended::on_hosts(programs::drawn_hosts(world), programs::as_rank_main(seed), chosen))
      if (code != 0) return "a rank ended with " + std::to_string(code) + "; it has said why";
    return std::string();
  });
}
