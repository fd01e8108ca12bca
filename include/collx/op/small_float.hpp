// SPDX-License-Identifier: Apache-2.0
// Floating-point numbers of 16 and 8 bits, as they are stored and sent: float16 (IEEE binary16),
// bfloat16 (the upper half of a float), float8_e5m2 and float8_e4m3 (OCP 8-bit formats). They are for
// storage: arithmetic converts to float, which holds each of their values exactly, and rounds once
// when the result is stored. What was accumulated in double goes by way of float, and is rounded twice.
#pragma once

#include <type_traits>

#include "collx/core/types.hpp"

namespace collx::inline abi_1 {

// What the largest exponent of a format stands for.
enum class specials : std::uint8_t {
  ieee,        // infinities and NaNs; what is too large becomes infinity
  finite_only  // ordinary numbers, but for the one NaN of all ones; what is too large, infinities
               // included, becomes the largest number (OCP calls this saturating conversion)
};

// A number of 1 sign bit, `ExponentBits` and `MantissaBits`, in this order, as unsigned `Storage`.
// Same size, alignment and bits as the types of CUDA, and trivial: an array of these may be copied to
// a device as it is. The default constructor leaves it uninitialised, as that of float does.
//
// From float: rounded to nearest, ties to even; NaNs stay NaNs, quiet ones, with the sign and the
// upper bits of their payload. Written without branches, so that loops over it use vectors.
template <class Storage, int ExponentBits, int MantissaBits, specials Specials>
class small_float {
  static_assert(1 + ExponentBits + MantissaBits == 8 * sizeof(Storage));
  using word = std::uint32_t;

 public:
  small_float() = default;
  COLLX_HD explicit constexpr small_float(float value) : bits_(round(__builtin_bit_cast(word, value))) {}
  template <class Number>
    requires std::is_arithmetic_v<Number>
  COLLX_HD explicit constexpr small_float(Number value) : small_float(static_cast<float>(value)) {}

  // Exact.
  COLLX_HD constexpr operator float() const { return expand(bits_); }

  [[nodiscard]] COLLX_HD constexpr Storage bits() const { return bits_; }
  [[nodiscard]] COLLX_HD static constexpr small_float from_bits(Storage bits) {
    small_float result(0.0f);
    result.bits_ = bits;
    return result;
  }

  // The largest finite number.
  [[nodiscard]] COLLX_HD static constexpr small_float max() {
    return from_bits(static_cast<Storage>(Specials == specials::ieee ? infinity_bits - 1 : nan_bits - 1));
  }

 private:
  static constexpr int shift = 23 - MantissaBits;  // a float has so many mantissa bits more
  static constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  static constexpr word rebias = static_cast<word>(127 - bias);
  static constexpr word magnitude_bits = (word{1} << (ExponentBits + MantissaBits)) - 1;
  static constexpr word mantissa_bits = (word{1} << MantissaBits) - 1;
  static constexpr word infinity_bits = magnitude_bits - mantissa_bits;  // all ones, mantissa 0
  static constexpr word nan_bits = magnitude_bits;                       // the one of finite_only
  static constexpr word largest_bits = Specials == specials::ieee ? infinity_bits : nan_bits - 1;
  static constexpr word float_infinity = 0x7f800000, float_quiet = 0x00400000;

  [[nodiscard]] COLLX_HD static constexpr float as_float(word bits) {
    return __builtin_bit_cast(float, bits);
  }
  [[nodiscard]] COLLX_HD static constexpr word as_word(float value) {
    return __builtin_bit_cast(word, value);
  }

  [[nodiscard]] COLLX_HD static constexpr float expand(Storage stored) {
    word const all = stored;
    word const sign = (all >> (ExponentBits + MantissaBits)) << 31;
    word const magnitude = all & magnitude_bits;
    word const moved = magnitude << shift;
    if constexpr (rebias == 0) return as_float(sign | moved);
    // Below the normal numbers: what is behind the point of 1.xxx * 2^(1 - bias), less the 1.
    word const one = (rebias + 1) << 23;
    word const below = as_word(as_float(moved + one) - as_float(one));
    word finite = (magnitude >> MantissaBits) == 0 ? below : moved + (rebias << 23);
    if constexpr (Specials == specials::ieee) {
      word const special = moved | float_infinity | (magnitude > infinity_bits ? float_quiet : 0);
      finite = magnitude >= infinity_bits ? special : finite;
    } else {
      finite = magnitude == nan_bits ? float_infinity | float_quiet : finite;
    }
    return as_float(sign | finite);
  }

  [[nodiscard]] COLLX_HD static constexpr Storage round(word value) {
    word const magnitude = value & 0x7fffffff;
    // Half a unit is added, less one unless the last bit that stays is odd; a carry into the exponent
    // is what rounding up to the next power of two means.
    word const half = (word{1} << (shift - 1)) - 1 + ((magnitude >> shift) & 1);
    word rounded = ((magnitude + half) >> shift) - (rebias << MantissaBits);
    if constexpr (rebias != 0) {
      // A float whose unit is this format's smallest number; adding it rounds to such units.
      word const unit = (rebias + 1 + static_cast<word>(shift)) << 23;
      word const below = as_word(as_float(magnitude) + as_float(unit)) - unit;
      rounded = magnitude < (rebias + 1) << 23 ? below : rounded;
      rounded = rounded > largest_bits && magnitude >= (rebias + 1) << 23 ? largest_bits : rounded;
    }
    word const payload = (magnitude >> shift) & mantissa_bits;
    word const nan = Specials == specials::ieee
                         ? infinity_bits | (word{1} << (MantissaBits - 1)) | payload
                         : nan_bits;
    rounded = magnitude > float_infinity ? nan : rounded;
    return static_cast<Storage>((value >> 31) << (ExponentBits + MantissaBits) | rounded);
  }

  Storage bits_;
};

using float16 = small_float<std::uint16_t, 5, 10, specials::ieee>;          // up to 65504, 11 bits
using bfloat16 = small_float<std::uint16_t, 8, 7, specials::ieee>;          // up to 3.4e38, 8 bits
using float8_e5m2 = small_float<std::uint8_t, 5, 2, specials::ieee>;        // up to 57344, 3 bits
using float8_e4m3 = small_float<std::uint8_t, 4, 3, specials::finite_only>; // up to 448, 4 bits

template <class T>
inline constexpr bool is_small_float = false;
template <class Storage, int ExponentBits, int MantissaBits, specials Specials>
inline constexpr bool is_small_float<small_float<Storage, ExponentBits, MantissaBits, Specials>> = true;

}  // namespace collx::inline abi_1
