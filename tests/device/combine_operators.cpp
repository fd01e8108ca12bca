// SPDX-License-Identifier: Apache-2.0
// combine() of teams gives the bits of host_combine.hpp, with every operator.
#include <doctest/doctest.h>

#include "device/combine_check.hpp"

namespace {

using device_test::check;

template <class T>
void check_all() {
  check<T>(collx::sum);
  check<T>(collx::prod);
  check<T>(collx::min);
  check<T>(collx::max);
  check<T>(collx::avg);
  check<T>(collx::logical_and);
  check<T>(collx::logical_or);
  if constexpr (std::is_integral_v<T>) {
    check<T>(collx::bit_and);
    check<T>(collx::bit_or);
    check<T>(collx::bit_xor);
  }
}

}  // namespace

TEST_CASE("teams combine: all operators, on an unsigned, a signed and a floating type and on small floats") {
  check_all<std::uint8_t>();
  check_all<int>();
  check_all<float>();
  check_all<collx::bfloat16>();
}
