// SPDX-License-Identifier: Apache-2.0
// Collectives x algorithms x element types, and operators, in place or not, over sockets: ranks that are
// threads with worlds of their own (any/matrix.hpp).
// ctest: TIMEOUT 300
// sanitizers: no, walks what any/communicator.cpp walks under them
#include <doctest/doctest.h>

#include "any/matrix.hpp"
#include "transport/wired.hpp"

TEST_CASE("any_communicator: every algorithm with every type over sockets, 2 to 4 ranks") {
  INFO("repeat with: COLLX_SEED=" << any_matrix::seed());
  for (collx::rank_t size = 2; size <= 4; ++size) {
    collx::transport::tcp_settings chosen;
    chosen.common.staging_bytes = 64 * 1024;
    wired::on_wired_threads(size, chosen, [&](auto& comm) {
      collx::any_communicator any = any_matrix::erased(comm);
      any_matrix::walk(any).run();
      any.barrier();
    });
  }
}
