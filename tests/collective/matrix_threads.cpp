// SPDX-License-Identifier: Apache-2.0
// Every schedule for 1 to 17 ranks that are threads: blocking calls (sample.hpp: with some of these numbers).
// ctest: TIMEOUT 300
#include <doctest/doctest.h>

#include "collective/each_rank.hpp"
#include "collx/bootstrap/threads.hpp"
#include "sample.hpp"
#include "watched.hpp"

using namespace each_rank;
using collx::transport::threads;

TEST_CASE("threads: every schedule of 1 to 17 ranks gives what the reference gives") {
  (void)oracle::reference::get();
  std::atomic<std::size_t> done{0};
  for (rank_t size = 1; size <= 17; ++size) {
    if (!sample::takes_running(size)) continue;
    CAPTURE(size);
    watched::on_threads(size,
                        [&](collx::communicator<threads>& comm) {
                          std::vector<oracle::element> memory(memory_count(size));
                          done += walk<forms::blocking>(comm, memory.data(),
                                                        [](oracle::setting const&) { return true; });
                        },
                        {.staging_bytes = cases::staging_bytes});
  }
  MESSAGE("collectives, counted on every rank: " << done.load());
  CHECK(done > 10'000);
}

TEST_CASE("threads: nobody leaves a barrier before everybody has come") {
  for (rank_t size = 1; size <= 17; ++size) {
    if (!sample::takes(size)) continue;
    CAPTURE(size);
    std::atomic<std::int64_t> arrived{0};
    watched::on_threads(size, [&](collx::communicator<threads>& comm) { walk_barriers(comm, arrived); });
  }
}
