// SPDX-License-Identifier: Apache-2.0
// The floating-point formats of 16 bits, as the emulated GPU rounds to them. Written without the library's
// own (core/small_float.hpp), which the emulated kernels are to be compared with.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace emulated {

// A number with so many bits of exponent and of fraction, rounded to nearest even from a double. What is too
// large becomes an infinity.
template <int Exponent, int Fraction>
struct small_number {
  std::uint16_t bits = 0;

  static constexpr int bias = (1 << (Exponent - 1)) - 1;
  static constexpr std::uint16_t infinity = ((1 << Exponent) - 1) << Fraction;

  [[nodiscard]] static small_number of(double value) {
    std::uint16_t const sign = std::signbit(value) ? 1 << (Exponent + Fraction) : 0;
    if (std::isnan(value)) return {0x7fff};  // the GPU's
    double const size = std::fabs(value);
    if (std::isinf(size)) return {static_cast<std::uint16_t>(sign | infinity)};
    if (size == 0) return {sign};
    int exponent = std::max(std::ilogb(size), 1 - bias);
    // In units of the last place: exact, since it only moves the point. nearbyint rounds to even.
    double const units = std::nearbyint(std::ldexp(size, Fraction - exponent));
    auto const whole = static_cast<std::uint32_t>(units);
    std::uint32_t const magnitude = (static_cast<std::uint32_t>(exponent - (1 - bias)) << Fraction) + whole;
    if (magnitude >= infinity) return {static_cast<std::uint16_t>(sign | infinity)};
    return {static_cast<std::uint16_t>(sign | magnitude)};
  }
  [[nodiscard]] float value() const {
    bool const negative = ((bits >> (Exponent + Fraction)) & 1) != 0;
    int const exponent = (bits >> Fraction) & ((1 << Exponent) - 1);
    int const fraction = bits & ((1 << Fraction) - 1);
    float size;
    if (exponent == (1 << Exponent) - 1) size = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0) size = std::ldexp(static_cast<float>(fraction), 1 - bias - Fraction);
    else size = std::ldexp(static_cast<float>(fraction + (1 << Fraction)), exponent - bias - Fraction);
    return negative ? -size : size;
  }
};

using half = small_number<5, 10>;
using bfloat = small_number<8, 7>;

}  // namespace emulated
