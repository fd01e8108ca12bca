// SPDX-License-Identifier: Apache-2.0
// Tests that run only where a variable asks for them, because of what they take; else they say so, in words
// that ctest looks for.
#pragma once

#include <cstdio>
#include <cstdlib>

[[nodiscard]] inline bool is_asked_for(char const* variable, char const* what_it_takes) {
  char const* const value = std::getenv(variable);
  if (value != nullptr && value[0] == '1') return true;
  std::printf("SKIPPED: %s=1 asks for this test, which takes %s\n", variable, what_it_takes);
  return false;
}

// Test cases whose names begin with "wide: " are a test of their own for ctest (label wide): matrices, for as
// many ranks as their reference knows.
[[nodiscard]] inline bool is_wide_asked_for() {
  return is_asked_for("COLLX_TEST_WIDE", "minutes, with the others of its label");
}
