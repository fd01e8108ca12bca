// SPDX-License-Identifier: Apache-2.0
// Numbers of 16 and 8 bits: every pattern against its definition (sign * mantissa * 2^exponent, in
// double), and rounding against a search for the nearest of all values.
#include "collx/op/small_float.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"

namespace {

// The value by definition, for patterns that are neither infinity nor NaN.
double value_of(unsigned bits, int exponent_bits, int mantissa_bits) {
  int const bias = (1 << (exponent_bits - 1)) - 1;
  unsigned const mantissa = bits & ((1u << mantissa_bits) - 1);
  int const exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  double const digits = exponent == 0 ? mantissa : mantissa + std::ldexp(1.0, mantissa_bits);
  double const magnitude = std::ldexp(digits, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
  return bits >> (exponent_bits + mantissa_bits) != 0 ? -magnitude : magnitude;
}

// All finite values that are not negative, ascending: the pattern is the index.
template <class T>
std::vector<double> ladder(int exponent_bits, int mantissa_bits, unsigned finite) {
  std::vector<double> all;
  for (unsigned bits = 0; bits < finite; ++bits) all.push_back(value_of(bits, exponent_bits, mantissa_bits));
  return all;
}

// The nearest pattern, of two equally near ones the even; `steps.size()` stands for "beyond the largest".
unsigned nearest(std::vector<double> const& steps, double beyond, double x) {
  auto const found = std::lower_bound(steps.begin(), steps.end(), x) - steps.begin();
  auto const above = static_cast<std::size_t>(found);
  if (above == 0) return 0;
  double const upper = above == steps.size() ? beyond : steps[above];
  double const to_upper = upper - x, to_lower = x - steps[above - 1];
  bool const up = to_upper < to_lower || (to_upper == to_lower && above % 2 == 0);
  return static_cast<unsigned>(up ? above : above - 1);
}

float from_bits(std::uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

// Floats around everything that rounding decides by: each value, the middle between two neighbours,
// and one float above and below; and random patterns.
template <class Visit>
void for_each_interesting(std::vector<double> const& steps, Visit const& visit) {
  auto const around = [&](double x) {
    auto const f = static_cast<float>(x);
    for (float const y : {f, std::nextafterf(f, 0.0f), std::nextafterf(f, 1e38f)}) visit(y);
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    around(steps[i]);
    if (i + 1 < steps.size()) around((steps[i] + steps[i + 1]) / 2);
  }
  around(steps.back() + (steps.back() - steps[steps.size() - 2]) / 2);
  for (float const f : {0x1p-149f, 0x1p-127f, 1e-30f, 1e30f, std::numeric_limits<float>::max()}) visit(f);
  collx::replayable_random random(11);
  for (int i = 0; i < 300'000; ++i)
    if (float const f = from_bits(static_cast<std::uint32_t>(random.next()) & 0x7fffffff); !std::isnan(f))
      visit(f);
}

template <class T>
void check_format(int exponent_bits, int mantissa_bits, unsigned finite, bool saturates) {
  unsigned const sign = 1u << (exponent_bits + mantissa_bits);
  using storage = decltype(T().bits());
  auto const stored = [](unsigned bits) { return T::from_bits(static_cast<storage>(bits)); };
  std::vector<double> const steps = ladder<T>(exponent_bits, mantissa_bits, finite);
  std::size_t wrong = 0;
  // Every pattern is expanded exactly, and comes back as it was.
  for (unsigned bits = 0; bits < 2 * sign; ++bits) {
    float const f = stored(bits);
    if ((bits & (sign - 1)) < finite)
      wrong += static_cast<double>(f) != value_of(bits, exponent_bits, mantissa_bits) ||
               std::signbit(f) != (bits >= sign) || T(f).bits() != bits;
    else if (!saturates && (bits & (sign - 1)) == finite)
      wrong += !std::isinf(f) || std::signbit(f) != (bits >= sign) || T(f).bits() != bits;
    else wrong += !std::isnan(f) || !std::isnan(static_cast<float>(T(f)));
  }
  CHECK(wrong == 0);
  // What lies behind the largest number, were there no end.
  double const beyond = 2 * steps.back() - steps[steps.size() - 2];
  for_each_interesting(steps, [&](float f) {
    unsigned expected = nearest(steps, beyond, f);
    if (f > beyond) expected = finite;
    if (saturates && expected == finite) expected = finite - 1;
    wrong += T(f).bits() != expected || T(-f).bits() != (expected | sign);
  });
  CHECK(wrong == 0);
  float const infinity = std::numeric_limits<float>::infinity();
  CHECK(T(infinity).bits() == (saturates ? finite - 1 : finite));
  CHECK(T(-infinity).bits() == ((saturates ? finite - 1 : finite) | sign));
  for (std::uint32_t const nan : {0x7fc00000u, 0x7f800001u, 0xffc12345u, 0xff800001u})
    CHECK(std::isnan(static_cast<float>(T(from_bits(nan)))));
  CHECK(T::max().bits() == finite - 1);
}

}  // namespace

TEST_CASE("float16: every pattern, and the nearest one to every float") {
  check_format<collx::float16>(5, 10, 0x7c00, false);
  CHECK(collx::float16::max() == 65504.0f);
}

TEST_CASE("bfloat16: every pattern, and the nearest one to every float") {
  check_format<collx::bfloat16>(8, 7, 0x7f80, false);
}

TEST_CASE("float8_e5m2: every pattern, and the nearest one to every float") {
  check_format<collx::float8_e5m2>(5, 2, 0x7c, false);
  CHECK(collx::float8_e5m2::max() == 57344.0f);
}

TEST_CASE("float8_e4m3: no infinity, one NaN, and what is too large becomes 448") {
  check_format<collx::float8_e4m3>(4, 3, 0x7f, true);
  CHECK(collx::float8_e4m3::max() == 448.0f);
  CHECK(collx::float8_e4m3(1000.0f) == 448.0f);
}

TEST_CASE("small floats are plain storage, and constant expressions") {
  static_assert(sizeof(collx::float16) == 2 && alignof(collx::float16) == 2);
  static_assert(sizeof(collx::bfloat16) == 2 && sizeof(collx::float8_e4m3) == 1);
  static_assert(std::is_trivial_v<collx::float16> && std::is_standard_layout_v<collx::float8_e5m2>);
  static_assert(collx::float16(1.0f).bits() == 0x3c00 && collx::bfloat16(1.0f).bits() == 0x3f80);
  static_assert(collx::float8_e4m3(1.0f).bits() == 0x38 && collx::float8_e5m2(1).bits() == 0x3c);
  static_assert(collx::float16(3) + collx::float16(4.0) == 7.0f);
  static_assert(std::is_convertible_v<collx::float16, float>);
  static_assert(!std::is_convertible_v<float, collx::float16>);
  CHECK(collx::float16(0.1f) < collx::float16(0.2f));
}
