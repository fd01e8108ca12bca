// SPDX-License-Identifier: Apache-2.0
// Random programs (programs/program.hpp) whose ranks are threads.
// address sanitizer: no, shm.cpp runs the same programs, with the same endpoints
#include "programs/program.hpp"
#include "sample.hpp"
#include "watched.hpp"

TEST_CASE("threads: random programs give what they must") {
  seeds::for_each_seed(sample::is_sample ? 10 : 35, "test_programs_threads", [](std::uint64_t seed) {
    programs::world_of const world(seed);
    try {
      watched::on_threads(world.size, programs::as_rank_main(seed), world.chosen);
    } catch (std::exception const& wrong) {
      return std::string(wrong.what());
    }
    return std::string();
  });
}
