// SPDX-License-Identifier: Apache-2.0
// Random programs (programs/program.hpp) whose ranks are processes that share memory.
// thread sanitizer: no, each rank is a process, and threads.cpp runs the same programs
#include "programs/program.hpp"
#include "sample.hpp"
#include "watched.hpp"

TEST_CASE("shm: random programs give what they must") {
  (void)oracle::reference::get();  // once, and not in every process
  seeds::for_each_seed(sample::is_sample ? 10 : 80, "test_programs_shm", [](std::uint64_t seed) {
    programs::world_of const world(seed);
    for (int const code : watched::on_processes(world.size, programs::as_rank_main(seed), world.chosen))
      if (code != 0) return "a rank ended with " + std::to_string(code) + "; it has said why";
    return std::string();
  });
}
