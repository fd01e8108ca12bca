// SPDX-License-Identifier: Apache-2.0
// combine() of teams gives the bits of host_combine.hpp: every operator on every arithmetic type (sample.hpp:
// some of each kind; but all of them under the thread sanitizer, which sees what the threads of a team do).
#include <doctest/doctest.h>

#include "device/combine_check.hpp"
#include "sample.hpp"

using device_test::check_all;

#if defined(COLLX_TEST_SAMPLE) && !defined(COLLX_TEST_THREAD_SANITIZER)
TEST_CASE("teams combine: all operators, on an unsigned, a signed and a floating type and on small floats") {
  check_all<unsigned char, int, float, collx::bfloat16>();
}
#else
TEST_CASE("teams combine: all operators, on floating types of 8 to 64 bits") {
  check_all<float, double, collx::float16, collx::bfloat16, collx::float8_e4m3, collx::float8_e5m2>();
}

TEST_CASE("teams combine: all operators, on integers of 8 to 64 bits") {
  check_all<signed char, unsigned char, short, unsigned short, int, unsigned, long long,
            unsigned long long>();
}
#endif
