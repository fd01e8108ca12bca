// SPDX-License-Identifier: Apache-2.0
// Collectives x algorithms x element types, and operators, in place or not: 2 to 8 processes
// (any/matrix.hpp).
// ctest: TIMEOUT 300
// sanitizers: no, walks what any/communicator.cpp walks under them
#include <doctest/doctest.h>

#include "any/matrix.hpp"
#include "watched.hpp"

TEST_CASE("any_communicator: every algorithm with every type on 2 to 8 processes") {
  INFO("repeat with: COLLX_SEED=" << any_matrix::seed());
  for (collx::rank_t size = 2; size <= 8; ++size) {
    CAPTURE(size);
    auto const codes =
        watched::on_processes(size,
                              [&](auto& comm) {
                                collx::any_communicator any = any_matrix::erased(comm);
                                any_matrix::walk(any).run();
                                any.barrier();  // a rank that only sends must not end before all have joined
                              },
                              {.staging_bytes = 64 * 1024});
    for (int const code : codes) CHECK(code == 0);
  }
}
