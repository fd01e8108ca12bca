// SPDX-License-Identifier: Apache-2.0
// The floating-point formats of 16 and of 8 bits, as the emulated GPU rounds to them. Written without the
// library's own (op/small_float.hpp), which the emulated kernels are to be compared with.
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
    return {static_cast<std::uint16_t>(sign | std::min<std::uint32_t>(magnitude_of(size), infinity))};
  }
  // The bits of a finite size, as if exponents had no end.
  [[nodiscard]] static std::uint32_t magnitude_of(double size) {
    if (size == 0) return 0;
    int const exponent = std::max(std::ilogb(size), 1 - bias);
    // In units of the last place: exact, since it only moves the point. nearbyint rounds to even.
    double const units = std::nearbyint(std::ldexp(size, Fraction - exponent));
    auto const whole = static_cast<std::uint32_t>(units);
    return (static_cast<std::uint32_t>(exponent - (1 - bias)) << Fraction) + whole;
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

// Of 8 bits, of which 0x7f is a NaN. Rounded as ".rn.satfinite": what is too large, an infinity too, becomes
// the largest number.
template <int Exponent, int Fraction, std::uint8_t Largest, bool HasInfinity>
struct tiny_number {
  std::uint8_t bits = 0;

  using wide = small_number<Exponent, Fraction>;

  [[nodiscard]] static tiny_number of(double value) {
    if (std::isnan(value)) return {0x7f};
    double const size = std::fabs(value);
    std::uint32_t const magnitude =
        std::isinf(size) ? Largest : std::min<std::uint32_t>(wide::magnitude_of(size), Largest);
    return {static_cast<std::uint8_t>((std::signbit(value) ? 0x80u : 0u) | magnitude)};
  }
  [[nodiscard]] float value() const {
    int const size = bits & 0x7f;
    if (HasInfinity || size < wide::infinity) return wide{bits}.value();
    if (size == 0x7f) return NAN;
    // What would be infinite has numbers of that exponent here: twice those of the exponent below.
    float const half_of_it = wide{static_cast<std::uint16_t>(size - (1 << Fraction))}.value();
    return (bits & 0x80) != 0 ? -2 * half_of_it : 2 * half_of_it;
  }
};

using e4m3 = tiny_number<4, 3, 0x7e, false>;
using e5m2 = tiny_number<5, 2, 0x7b, true>;

}  // namespace emulated
