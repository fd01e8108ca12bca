// SPDX-License-Identifier: Apache-2.0
// on_tcp_processes: sizes that are refused. What its ranks do is tested by all that runs over TCP.
// component: tcp
// thread sanitizer: no, nothing runs
#include "collx/bootstrap/tcp_processes.hpp"

#include <string>

#include <doctest/doctest.h>

TEST_CASE("no ranks over tcp, or absurdly many, are refused by who was asked for them") {
  for (collx::rank_t const size : {0, -1, 4097}) {
    std::string said;
    try {
      (void)collx::bootstrap::on_tcp_processes(size, [](auto&) { FAIL("started"); });  // unwatched
    } catch (collx::error const& refused) {
      CHECK(refused.code() == collx::status::bad_argument);
      said = refused.what();
    }
    CHECK(said == "collx: on_tcp_processes: the number of ranks must be at least 1 and at most 4096 (given " +
                      std::to_string(size) + ")");
  }
}
