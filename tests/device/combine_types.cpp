// SPDX-License-Identifier: Apache-2.0
// combine() of teams gives the bits of host_combine.hpp: every element type, and operators of the user.
#include <complex>

#include <doctest/doctest.h>

#include "collx/op/location.hpp"
#include "device/combine_check.hpp"

namespace {

using collx::bfloat16;
using collx::float8_e4m3;
using device_test::check;

}  // namespace

TEST_CASE(
    "teams combine: an operator that finishes and one that compares, on types that others have the bits of") {
  check<char>(collx::avg);
  check<long>(collx::max);
  check<unsigned long>(collx::avg);
  check<long double>(collx::avg);
  check<long double>(collx::max);
  check<bool>(collx::logical_or);
}

TEST_CASE("teams combine: complex numbers, and pairs of a value and its place") {
  check<std::complex<float>>(collx::prod);
  check<std::complex<double>>(collx::sum);
  check<collx::value_index<float, std::int32_t>>(collx::min_location);
  check<collx::value_index<double, std::int64_t>>(collx::max_location);
}

TEST_CASE("teams combine: operators of the user's, in order, and in an accumulate type of his choice") {
  check<int>(collx::ordered([](int a, int b) { return a * 7 - b; }));
  check<double>([](double a, double b) { return a * 0.5 - b; });
  check<float>(collx::accumulate_in<double>(collx::sum));
  check<signed char>(collx::accumulate_in<int>(collx::avg));
  check<float8_e4m3>(collx::accumulate_in<double>(collx::sum));
  // On the small type itself: rounded at every step.
  check<bfloat16>([](bfloat16 a, bfloat16 b) { return bfloat16(a + b); });
}
