// SPDX-License-Identifier: Apache-2.0
// What fuzzers have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "collx/core/error.hpp"

// What libFuzzer sees as a fault if it does not hold.
inline void require(bool good) {
  if (!good) std::abort();
}

// Takes values out of the input; zeros at its end.
struct input {
  std::uint8_t const* at;
  std::size_t left;
  std::uint32_t byte() {
    if (left == 0) return 0;
    --left;
    return *at++;
  }
  std::uint32_t word() { return byte() | byte() << 8; }
};

// Whatever is refused is refused as a bad argument, and with words.
template <class F>
void or_error(F const& f) {
  try {
    f();
  } catch (collx::error const& refused) {
    require(refused.code() == collx::status::bad_argument && refused.what()[0] != '\0');
  }
}
