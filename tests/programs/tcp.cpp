// SPDX-License-Identifier: Apache-2.0
// Random programs (programs/program.hpp) over sockets: ranks are threads with worlds of their own.
#include "programs/program.hpp"
#include "sample.hpp"
#include "transport/wired.hpp"

TEST_CASE("tcp: random programs give what they must") {
  seeds::for_each_seed(sample::is_sample ? 20 : 100, "test_programs_tcp", [](std::uint64_t seed) {
    programs::world_of const world(seed);
    collx::transport::tcp_settings chosen;
    chosen.common = world.chosen;
    try {
      wired::on_wired_threads(world.size, chosen, programs::as_rank_main(seed));
    } catch (std::exception const& wrong) {
      return std::string(wrong.what());
    }
    return std::string();
  });
}
