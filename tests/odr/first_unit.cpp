// SPDX-License-Identifier: Apache-2.0
// One of two translation units that include every header; see second_unit.cpp.
#include <string>

#include <doctest/doctest.h>

#include "every_header.hpp"

int algorithm_count_of_second_unit();
char const* status_name_of_second_unit();

TEST_CASE("two translation units that include everything link and agree") {
  CHECK(algorithm_count_of_second_unit() == collx::algo::all::size);
  CHECK(status_name_of_second_unit() == std::string(collx::name(collx::status::timeout)));
}
