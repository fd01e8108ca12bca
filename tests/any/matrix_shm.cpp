// SPDX-License-Identifier: Apache-2.0
// Collectives x algorithms x element types, and operators, in place or not: 2 to 5 and
// 8 processes (any/matrix.hpp). Asked for, up to 33.
// ctest: TIMEOUT 300
// ctest: PROCESSORS 2
// sanitizers: no, walks what any/communicator.cpp walks under them
#include <doctest/doctest.h>

#include "any/matrix.hpp"
#include "asked_for.hpp"
#include "watched.hpp"

namespace {

void walk_in_processes(collx::rank_t size, std::size_t types) {
  INFO("repeat with: COLLX_SEED=" << any_matrix::seed());
  CAPTURE(size);
  auto const codes = watched::on_processes(size, [&](auto& comm) { any_matrix::walk_on(comm, types); },
                                           {.staging_bytes = 64 * 1024});
  for (int const code : codes) CHECK(code == 0);
}

}  // namespace

TEST_CASE("any_communicator: every algorithm with every type on 2 to 5 and 8 processes") {
  for (collx::rank_t const size : {2, 3, 4, 5, 8}) walk_in_processes(size, collx::data_type_count);
}

TEST_CASE("wide: any_communicator, every algorithm on 6, 7 and 9 to 33 processes") {
  if (!is_wide_asked_for()) return;
  for (collx::rank_t const size : {6, 7}) walk_in_processes(size, collx::data_type_count);
  for (collx::rank_t size = 9; size <= any_matrix::size_max; ++size)
    if (takes_wide(size)) walk_in_processes(size, any_matrix::types_of_many_ranks);
}
