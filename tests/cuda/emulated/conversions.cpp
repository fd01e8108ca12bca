// SPDX-License-Identifier: Apache-2.0
// cvt and cvta: from one type to another, and between spaces of addresses, which are one here.
#include <cfenv>
#include <cmath>
#include <limits>
#include <utility>

#include "cuda/emulated/floats.hpp"
#include "cuda/emulated/thread.hpp"

namespace emulated {
namespace {

using i = instruction;

enum class rounding : std::uint8_t { nearest, zero, down, up };
enum : std::uint8_t { to_integer = 16, saturates = 32, flushes = 64 };

template <class T>
inline constexpr bool is_float =
    std::is_floating_point_v<T> || std::is_same_v<T, half> || std::is_same_v<T, bfloat>;

template <class T>
double number(T value) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(value);
  else return value.value();
}

double to_whole(double value, rounding how) {
  switch (how) {
    case rounding::nearest: return std::nearbyint(value);
    case rounding::zero: return std::trunc(value);
    case rounding::down: return std::floor(value);
    case rounding::up: return std::ceil(value);
  }
  return value;
}

// Volatile: compilers move conversions past fesetround().
template <class To, class From>
To rounded(From value, rounding how) {
  if (how == rounding::nearest) return static_cast<To>(value);
  From const volatile given = value;
  std::fesetround(how == rounding::zero ? FE_TOWARDZERO : how == rounding::down ? FE_DOWNWARD : FE_UPWARD);
  To const volatile result = static_cast<To>(given);
  std::fesetround(FE_TONEAREST);
  return result;
}

// A number of 16 bits next to a value, towards zero.
template <class To>
To cut(double value) {
  To near = To::of(value);
  if (std::isfinite(value) && std::fabs(double{near.value()}) > std::fabs(value))
    near.bits = static_cast<std::uint16_t>(near.bits - 1);
  return near;
}

template <class To, class From>
To converted(From value, std::uint8_t detail) {
  auto const how = static_cast<rounding>(detail & 15);
  if constexpr (is_float<To> && is_float<From>) {
    double v = number(value);
    if ((detail & flushes) != 0 && std::is_same_v<From, float> &&
        std::fpclassify(static_cast<float>(v)) == FP_SUBNORMAL)
      v = std::copysign(0., v);
    if ((detail & to_integer) != 0) v = to_whole(v, how);
    if ((detail & saturates) != 0) v = !(v > 0) ? 0 : v > 1 ? 1 : v;
    if constexpr (std::is_floating_point_v<To>) {
      return rounded<To>(v, how);
    } else {
      if (how == rounding::zero) return cut<To>(v);
      if (how != rounding::nearest) throw fault("a conversion that rounds up or down");
      return To::of(v);
    }
  } else if constexpr (is_float<To>) {
    if constexpr (std::is_floating_point_v<To>) return rounded<To>(value, how);
    else return To::of(static_cast<double>(value));
  } else if constexpr (is_float<From>) {
    double const v = to_whole(number(value), how);
    if (std::isnan(v)) return To{0};
    if (v <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (v >= std::ldexp(1., std::numeric_limits<To>::digits)) return std::numeric_limits<To>::max();
    return static_cast<To>(v);
  } else {
    if ((detail & saturates) != 0) {
      if (std::cmp_less(value, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
      if (std::cmp_greater(value, std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    }
    return static_cast<To>(value);
  }
}

template <class To, class From>
void convert(thread& t, i const& o) {
  put<To>(t, o.to, converted<To>(get<From>(t, o.from[0]), o.detail));
}

// cvt.f16x2.f32 d, a, b: a becomes the upper half.
template <class To>
void convert_pair(thread& t, i const& o) {
  std::uint32_t const upper = converted<To>(get<float>(t, o.from[0]), o.detail).bits;
  std::uint32_t const lower = converted<To>(get<float>(t, o.from[1]), o.detail).bits;
  put<std::uint32_t>(t, o.to, (upper << 16) | lower);
}

// cvt.e4m3x2.f32 d, a, b: a becomes the upper byte.
template <class To>
void narrow_pair(thread& t, i const& o) {
  std::uint32_t const upper = To::of(get<float>(t, o.from[0])).bits,
                      lower = To::of(get<float>(t, o.from[1])).bits;
  put<std::uint16_t>(t, o.to, static_cast<std::uint16_t>((upper << 8) | lower));
}
// cvt.e4m3x2.f16x2 d, a: half by half.
template <class To>
void narrow_halves(thread& t, i const& o) {
  auto const both = get<std::uint32_t>(t, o.from[0]);
  auto const narrow = [](std::uint32_t bits) {
    return std::uint32_t{To::of(half{static_cast<std::uint16_t>(bits)}.value()).bits};
  };
  put<std::uint16_t>(t, o.to, static_cast<std::uint16_t>((narrow(both >> 16) << 8) | narrow(both & 0xffff)));
}
// cvt.f16x2.e4m3x2 d, a: exact, each.
template <class From>
void widen_pair(thread& t, i const& o) {
  auto const both = get<std::uint16_t>(t, o.from[0]);
  std::uint32_t const upper = half::of(From{static_cast<std::uint8_t>(both >> 8)}.value()).bits;
  std::uint32_t const lower = half::of(From{static_cast<std::uint8_t>(both)}.value()).bits;
  put<std::uint32_t>(t, o.to, (upper << 16) | lower);
}

template <class Tiny>
execute_function between_tiny(std::string const& tiny, std::string const& to, std::string const& from,
                              bool saturates_finite) {
  if (from == tiny && to == "f16x2") return widen_pair<Tiny>;
  if (to != tiny || !saturates_finite) return nullptr;
  return from == "f32" ? narrow_pair<Tiny> : from == "f16x2" ? narrow_halves<Tiny> : nullptr;
}

void copy_address(thread& t, i const& o) { put<std::uint64_t>(t, o.to, bits_of(t, o.from[0])); }

template <class To>
execute_function from(std::string const& type) {
  if (type == "u8") return convert<To, std::uint8_t>;
  if (type == "u16") return convert<To, std::uint16_t>;
  if (type == "u32") return convert<To, std::uint32_t>;
  if (type == "u64") return convert<To, std::uint64_t>;
  if (type == "s8") return convert<To, std::int8_t>;
  if (type == "s16") return convert<To, std::int16_t>;
  if (type == "s32") return convert<To, std::int32_t>;
  if (type == "s64") return convert<To, std::int64_t>;
  if (type == "f16") return convert<To, half>;
  if (type == "bf16") return convert<To, bfloat>;
  if (type == "f32") return convert<To, float>;
  if (type == "f64") return convert<To, double>;
  return nullptr;
}

execute_function decode_convert(statement const& s, i& o) {
  for (std::string const& part : s.opcode) {
    if (part == "rzi" || part == "rni" || part == "rmi" || part == "rpi") o.detail |= to_integer;
    if (part == "rz" || part == "rzi") o.detail |= static_cast<std::uint8_t>(rounding::zero);
    if (part == "rm" || part == "rmi") o.detail |= static_cast<std::uint8_t>(rounding::down);
    if (part == "rp" || part == "rpi") o.detail |= static_cast<std::uint8_t>(rounding::up);
    if (part == "sat") o.detail |= saturates;
    if (part == "ftz") o.detail |= flushes;
    if (part == "relu") return nullptr;
  }
  std::string const& to = s.opcode[s.opcode.size() - 2];
  std::string const& type = s.last();
  bool const saturates_finite = s.has("satfinite");
  if (auto const f = between_tiny<e4m3>("e4m3x2", to, type, saturates_finite)) return f;
  if (auto const f = between_tiny<e5m2>("e5m2x2", to, type, saturates_finite)) return f;
  if (saturates_finite) return nullptr;
  if (to == "f16x2" && type == "f32") return convert_pair<half>;
  if (to == "bf16x2" && type == "f32") return convert_pair<bfloat>;
  if (to == "u8") return from<std::uint8_t>(type);
  if (to == "u16") return from<std::uint16_t>(type);
  if (to == "u32") return from<std::uint32_t>(type);
  if (to == "u64") return from<std::uint64_t>(type);
  if (to == "s8") return from<std::int8_t>(type);
  if (to == "s16") return from<std::int16_t>(type);
  if (to == "s32") return from<std::int32_t>(type);
  if (to == "s64") return from<std::int64_t>(type);
  if (to == "f16") return from<half>(type);
  if (to == "bf16") return from<bfloat>(type);
  if (to == "f32") return from<float>(type);
  if (to == "f64") return from<double>(type);
  return nullptr;
}

}  // namespace

execute_function decode_conversions(statement const& s, instruction& o) {
  if (s.opcode[0] == "cvt") return decode_convert(s, o);
  if (s.opcode[0] == "cvta" && s.last() == "u64") return copy_address;
  return nullptr;
}

}  // namespace emulated
