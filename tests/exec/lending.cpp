// SPDX-License-Identifier: Apache-2.0
// What stays as it is where it lies until receivers have read it, which executors and short calls ask alike.
#include "collx/exec/lending.hpp"

#include <initializer_list>

#include <doctest/doctest.h>

using collx::place;
using collx::exec::stays_there;

TEST_CASE("lending: what no later step overwrites may be read where it lies, but in scratch") {
  collx::primitive const step{};
  for (bool const in_place : {false, true}) {
    CHECK(stays_there(step, place::input, in_place));
    CHECK(stays_there(step, place::output, in_place));
    CHECK_FALSE(stays_there(step, place::scratch, in_place));
  }
}

TEST_CASE("lending: of what a step must copy, only a separate input") {
  collx::primitive const step{.copy = true};
  for (bool const in_place : {false, true}) {
    CHECK(stays_there(step, place::input, in_place) == !in_place);
    CHECK_FALSE(stays_there(step, place::output, in_place));
    CHECK_FALSE(stays_there(step, place::scratch, in_place));
  }
}
