// SPDX-License-Identifier: Apache-2.0
// Tests that run only where a variable asks for them, because of what they take; else they say so, in words
// that ctest looks for.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

[[nodiscard]] inline bool is_asked_for(char const* variable, char const* what_it_takes) {
  char const* const value = std::getenv(variable);
  if (value != nullptr && value[0] == '1') return true;
  std::printf("SKIPPED: %s=1 asks for this test, which takes %s\n", variable, what_it_takes);
  return false;
}

[[nodiscard]] inline bool is_every_size_asked_for() {
  char const* const value = std::getenv("COLLX_TEST_WIDE");
  return value != nullptr && std::string_view(value) == "all";
}

// Test cases whose names begin with "wide: " are a test of their own for ctest (label wide): matrices, for up
// to as many ranks as their reference knows.
[[nodiscard]] inline bool is_wide_asked_for() {
  return is_every_size_asked_for() ||
         is_asked_for("COLLX_TEST_WIDE", "minutes, with the others of its label");
}

// Of those numbers of ranks: with COLLX_TEST_WIDE=all every one, with 1, in a fifth of the time, powers of
// two, numbers beside them, and others of many divisors or few. Such that any/matrix.hpp, which draws some of
// the types for each number, draws all of them.
[[nodiscard]] inline bool takes_wide(int size) {
  if (is_every_size_asked_for()) return true;
  for (int const taken : {6, 7, 9, 12, 16, 17, 24, 33})
    if (size == taken) return true;
  return false;
}
