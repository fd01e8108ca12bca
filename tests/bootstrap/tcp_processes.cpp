// SPDX-License-Identifier: Apache-2.0
// on_tcp_processes: sizes and settings that are refused. What its ranks do, all that runs over TCP tests.
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

TEST_CASE("settings that do not go together are refused before any rank is started") {
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = std::size_t{1} << 20;
  chosen.limits = {.flows = 3, .slice_bytes = 1024, .slices_per_flow = 2};
  auto const start = [&] {
    (void)collx::bootstrap::on_tcp_processes(2, [](auto&) { FAIL("started"); }, chosen);  // unwatched
  };
  CHECK_THROWS_WITH_AS(start(), doctest::Contains("limits.slice_bytes is 1024; set it to at least 10083"),
                       collx::error);
}
