// SPDX-License-Identifier: Apache-2.0
// Collectives x algorithms x element types, and operators, in place or not: 1 to 17 threads (any/matrix.hpp).
// ctest: TIMEOUT 300
// thread sanitizer: no, takes minutes, for code that any/calls.cpp runs under it
#include <atomic>

#include <doctest/doctest.h>

#include "any/matrix.hpp"
#include "watched.hpp"

TEST_CASE("any_communicator: every algorithm with every type on 1 to 17 threads") {
  INFO("repeat with: COLLX_SEED=" << any_matrix::seed());
  std::atomic<std::size_t> done{0};
  for (collx::rank_t size = 1; size <= 17; ++size) {
    if (!sample::takes(size)) continue;
    watched::on_threads(size,
                        [&](auto& comm) {
                          collx::any_communicator any = any_matrix::erased(comm);
                          done += any_matrix::walk(any).run();
                        },
                        {.staging_bytes = 64 * 1024});
  }
  MESSAGE("collectives, counted on every rank: " << done.load() << ", seed " << any_matrix::seed());
  CHECK(done > 1'000);
}
