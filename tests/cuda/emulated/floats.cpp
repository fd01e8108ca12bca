// SPDX-License-Identifier: Apache-2.0
// Instructions on floating-point numbers. Each rounds once, to nearest even, unless it says otherwise.
#include "cuda/emulated/floats.hpp"

#include <cfenv>
#include <cmath>
#include <limits>

#include "cuda/emulated/thread.hpp"

namespace emulated {
namespace {

using i = instruction;

// How one is computed with: half ones as float, in which sums and products of two of them are exact enough to
// be rounded once more; what is fused, as double.
template <class T>
struct arithmetic {
  using type = T;
};
template <>
struct arithmetic<half> {
  using type = float;
};
template <>
struct arithmetic<bfloat> {
  using type = float;
};

template <class T>
typename arithmetic<T>::type wide(T const& value) {
  if constexpr (std::is_floating_point_v<T>) return value;
  else return value.value();
}
template <class T, class V>
T narrow(V value) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
  else return T::of(value);
}

// ".ftz": what is subnormal counts as zero.
template <class T>
T flushed(T value, bool ftz) {
  if constexpr (std::is_floating_point_v<T>)
    if (ftz && std::fpclassify(value) == FP_SUBNORMAL) return std::copysign(T{0}, value);
  return value;
}
enum : std::uint8_t {
  ftz = 1,
  saturates = 2,
  propagates_nan = 4,
  rounds_to_zero = 8,
  rounds_down = 16,
  rounds_up = 32
};

template <class V>
V finished(V value, std::uint8_t detail) {
  if ((detail & saturates) != 0) value = !(value > 0) ? V{0} : value > 1 ? V{1} : value;
  return flushed(value, (detail & ftz) != 0);
}
struct rounding {
  explicit rounding(std::uint8_t detail) {
    if ((detail & (rounds_to_zero | rounds_down | rounds_up)) == 0) return;
    changed = true;
    std::fesetround((detail & rounds_to_zero) != 0 ? FE_TOWARDZERO
                    : (detail & rounds_down) != 0  ? FE_DOWNWARD
                                                   : FE_UPWARD);
  }
  ~rounding() {
    if (changed) std::fesetround(FE_TONEAREST);
  }
  bool changed = false;
};

template <class T, auto F>
void unary(thread& t, i const& o) {
  rounding const how(o.detail);
  bool const f = (o.detail & ftz) != 0;
  put<T>(t, o.to, narrow<T>(finished(F(flushed(wide(get<T>(t, o.from[0])), f)), o.detail)));
}
template <class T, auto F>
void binary(thread& t, i const& o) {
  rounding const how(o.detail);
  bool const f = (o.detail & ftz) != 0;
  put<T>(t, o.to,
         narrow<T>(finished(F(flushed(wide(get<T>(t, o.from[0])), f), flushed(wide(get<T>(t, o.from[1])), f)),
                            o.detail)));
}
template <class T>
void fused(thread& t, i const& o) {
  rounding const how(o.detail);
  bool const f = (o.detail & ftz) != 0;
  auto const a = flushed(wide(get<T>(t, o.from[0])), f), b = flushed(wide(get<T>(t, o.from[1])), f),
             c = flushed(wide(get<T>(t, o.from[2])), f);
  if constexpr (std::is_floating_point_v<T>) put<T>(t, o.to, finished(std::fma(a, b, c), o.detail));
  else put<T>(t, o.to, narrow<T>(finished(std::fma(double{a}, double{b}, double{c}), o.detail)));
}

// Of two, of which a NaN is passed over, or not.
template <class V, bool Most>
V extreme(V a, V b, bool nan) {
  if (std::isnan(a) || std::isnan(b)) {
    if (nan || (std::isnan(a) && std::isnan(b))) return std::numeric_limits<V>::quiet_NaN();
    return std::isnan(a) ? b : a;
  }
  if (a == 0 && b == 0) return std::signbit(a) == Most ? b : a;  // -0 is less than 0
  return (a < b) == Most ? b : a;
}
template <class T, bool Most>
void extreme_of(thread& t, i const& o) {
  bool const f = (o.detail & ftz) != 0;
  auto const a = flushed(wide(get<T>(t, o.from[0])), f), b = flushed(wide(get<T>(t, o.from[1])), f);
  auto const best = extreme<decltype(wide(T{})), Most>(a, b, (o.detail & propagates_nan) != 0);
  if constexpr (!std::is_floating_point_v<T>)
    if (std::isnan(best)) return put<std::uint16_t>(t, o.to, 0x7fff);
  put<T>(t, o.to, narrow<T>(best));
}

// Two halves of a register.
template <execute_function F>
void both(thread& t, i const& o) {
  std::uint64_t from[3]{};
  for (int k = 0; k < 3; ++k)
    if (o.from[k].kind != source_kind::none) from[k] = bits_of(t, o.from[k]);
  std::uint32_t out = 0;
  for (unsigned half_of = 0; half_of < 2; ++half_of) {
    i one = o;
    for (int k = 0; k < 3; ++k)
      if (o.from[k].kind != source_kind::none)
        one.from[k] = {source_kind::constant, 0, (from[k] >> (16 * half_of)) & 0xffff};
    F(t, one);
    out |= static_cast<std::uint32_t>(t.registers[o.to.index] & 0xffff) << (16 * half_of);
  }
  put(t, o.to, out);
}

template <class T, auto F>
void compare(thread& t, i const& o) {
  bool const f = (o.detail & ftz) != 0;
  bool const holds = F(flushed(wide(get<T>(t, o.from[0])), f), flushed(wide(get<T>(t, o.from[1])), f));
  put<std::uint32_t>(t, o.to, holds);
  put<std::uint32_t>(t, o.to2, !holds);
}
template <class T>
execute_function comparison(std::string const& how) {
  using V = typename arithmetic<T>::type;
  if (how == "eq") return compare<T, [](V a, V b) { return a == b; }>;
  if (how == "ne") return compare<T, [](V a, V b) { return a < b || b < a; }>;
  if (how == "lt") return compare<T, [](V a, V b) { return a < b; }>;
  if (how == "le") return compare<T, [](V a, V b) { return a <= b; }>;
  if (how == "gt") return compare<T, [](V a, V b) { return b < a; }>;
  if (how == "ge") return compare<T, [](V a, V b) { return a >= b; }>;
  if (how == "equ") return compare<T, [](V a, V b) { return !(a < b || b < a); }>;
  if (how == "neu") return compare<T, [](V a, V b) { return !(a == b); }>;
  if (how == "ltu") return compare<T, [](V a, V b) { return !(a >= b); }>;
  if (how == "leu") return compare<T, [](V a, V b) { return !(b < a); }>;
  if (how == "gtu") return compare<T, [](V a, V b) { return !(a <= b); }>;
  if (how == "geu") return compare<T, [](V a, V b) { return !(a < b); }>;
  if (how == "num") return compare<T, [](V a, V b) { return !std::isnan(a) && !std::isnan(b); }>;
  if (how == "nan") return compare<T, [](V a, V b) { return std::isnan(a) || std::isnan(b); }>;
  return nullptr;
}

template <class T>
void test_finite(thread& t, i const& o) {
  put<std::uint32_t>(t, o.to, std::isfinite(wide(get<T>(t, o.from[0]))));
}
template <class T>
void test_infinite(thread& t, i const& o) {
  put<std::uint32_t>(t, o.to, std::isinf(wide(get<T>(t, o.from[0]))));
}
template <class T>
void test_nan(thread& t, i const& o) {
  put<std::uint32_t>(t, o.to, std::isnan(wide(get<T>(t, o.from[0]))));
}

template <class T>
execute_function of_type(statement const& s) {
  using V = typename arithmetic<T>::type;
  std::string const& op = s.opcode[0];
  if (op == "add") return binary<T, [](V a, V b) { return a + b; }>;
  if (op == "sub") return binary<T, [](V a, V b) { return a - b; }>;
  if (op == "mul") return binary<T, [](V a, V b) { return a * b; }>;
  if (op == "div") return binary<T, [](V a, V b) { return a / b; }>;
  if (op == "fma" || op == "mad") return fused<T>;
  if (op == "min") return extreme_of<T, false>;
  if (op == "max") return extreme_of<T, true>;
  if (op == "neg") return unary<T, [](V a) { return -a; }>;
  if (op == "abs") return unary<T, [](V a) { return std::fabs(a); }>;
  if (op == "copysign") return binary<T, [](V a, V b) { return std::copysign(b, a); }>;
  if (op == "setp" && s.opcode.size() <= 4 && s.operands.size() == 3) return comparison<T>(s.opcode[1]);
  if (op == "testp" && s.has("finite")) return test_finite<T>;
  if (op == "testp" && s.has("infinite")) return test_infinite<T>;
  if (op == "testp" && s.has("notanumber")) return test_nan<T>;
  if constexpr (std::is_floating_point_v<T>) {
    if (op == "sqrt") return unary<T, [](V a) { return std::sqrt(a); }>;
    if (op == "rcp") return unary<T, [](V a) { return 1 / a; }>;
    if (op == "rsqrt") return unary<T, [](V a) { return 1 / std::sqrt(a); }>;
    if (op == "ex2") return unary<T, [](V a) { return std::exp2(a); }>;
    if (op == "lg2") return unary<T, [](V a) { return std::log2(a); }>;
    if (op == "sin") return unary<T, [](V a) { return std::sin(a); }>;
    if (op == "cos") return unary<T, [](V a) { return std::cos(a); }>;
    if (op == "tanh") return unary<T, [](V a) { return std::tanh(a); }>;
  }
  return nullptr;
}

template <class T>
execute_function of_pairs(statement const& s) {
  using V = float;
  std::string const& op = s.opcode[0];
  if (op == "add") return both<binary<T, [](V a, V b) { return a + b; }>>;
  if (op == "sub") return both<binary<T, [](V a, V b) { return a - b; }>>;
  if (op == "mul") return both<binary<T, [](V a, V b) { return a * b; }>>;
  if (op == "fma") return both<fused<T>>;
  if (op == "min") return both<extreme_of<T, false>>;
  if (op == "max") return both<extreme_of<T, true>>;
  if (op == "neg") return both<unary<T, [](V a) { return -a; }>>;
  if (op == "abs") return both<unary<T, [](V a) { return std::fabs(a); }>>;
  return nullptr;
}

}  // namespace

execute_function decode_floats(statement const& s, instruction& o) {
  if (s.opcode.size() < 2 || s.opcode[0] == "cvt" || s.opcode[0] == "mov" || s.opcode[0] == "ld" ||
      s.opcode[0] == "st" || s.opcode[0] == "atom" || s.opcode[0] == "red")
    return nullptr;
  if (s.has("ftz")) o.detail |= ftz;
  if (s.has("sat")) o.detail |= saturates;
  if (s.has("NaN")) o.detail |= propagates_nan;
  if (s.has("rz")) o.detail |= rounds_to_zero;
  if (s.has("rm")) o.detail |= rounds_down;
  if (s.has("rp")) o.detail |= rounds_up;
  if (s.has("xorsign") || s.has("relu")) return nullptr;
  std::string const& type = s.last();
  if (type == "f32") return of_type<float>(s);
  if (type == "f64") return of_type<double>(s);
  if (type == "f16") return of_type<half>(s);
  if (type == "bf16") return of_type<bfloat>(s);
  if (type == "f16x2") return of_pairs<half>(s);
  if (type == "bf16x2") return of_pairs<bfloat>(s);
  return nullptr;
}

}  // namespace emulated
