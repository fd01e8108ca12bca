// SPDX-License-Identifier: Apache-2.0
// What all programs that are compared have in common: which buffer a call takes.
#include "../perf/method.h"

#include <cstdint>
#include <initializer_list>

#include <doctest/doctest.h>

TEST_CASE("calls walk over the buffers") {
  for (std::int64_t const count : {1, 4, 5}) {
    method_rotation turns{count, 0};
    for (std::int64_t call = 0; call < 3 * count; ++call) CHECK(method_next(&turns) == call % count);
  }
}
