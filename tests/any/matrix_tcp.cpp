// SPDX-License-Identifier: Apache-2.0
// Collectives x algorithms x element types, and operators, in place or not, over sockets: ranks that are
// threads with worlds of their own (any/matrix.hpp). Asked for, up to 33 that are processes.
// ctest: TIMEOUT 300
// ctest: PROCESSORS 2
// component: tcp
// sanitizers: no, walks what any/communicator.cpp walks under them
#include <doctest/doctest.h>

#include "any/matrix.hpp"
#include "asked_for.hpp"
#include "transport/wired.hpp"
#include "watched_tcp.hpp"

namespace {

collx::transport::tcp_settings settings_of_test() {
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = 64 * 1024;
  return chosen;
}

}  // namespace

TEST_CASE("any_communicator: every algorithm with every type over sockets, 2 to 4 ranks") {
  INFO("repeat with: COLLX_SEED=" << any_matrix::seed());
  for (collx::rank_t size = 2; size <= 4; ++size) {
    wired::on_wired_threads(size, settings_of_test(), [&](auto& comm) { any_matrix::walk_on(comm); });
  }
}

TEST_CASE("wide: any_communicator, every algorithm on 5 to 33 processes over sockets") {
  if (!is_wide_asked_for()) return;
  INFO("repeat with: COLLX_SEED=" << any_matrix::seed());
  for (collx::rank_t size = 5; size <= any_matrix::size_max; ++size) {
    if (!takes_wide(size)) continue;
    CAPTURE(size);
    auto const codes = watched::on_tcp_processes(
        size, [&](auto& comm) { any_matrix::walk_on(comm, any_matrix::types_of_many_ranks / 2); },
        settings_of_test());
    for (int const code : codes) CHECK(code == 0);
  }
}
