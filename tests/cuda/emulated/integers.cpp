// SPDX-License-Identifier: Apache-2.0
// Instructions on integers, bits and predicates.
#include <algorithm>
#include <bit>
#include <limits>

#include "cuda/emulated/thread.hpp"

namespace emulated {
namespace {

using i = instruction;

template <class T, auto F>
void unary(thread& t, i const& o) {
  put<T>(t, o.to, static_cast<T>(F(get<T>(t, o.from[0]))));
}
template <class T, auto F>
void binary(thread& t, i const& o) {
  put<T>(t, o.to, static_cast<T>(F(get<T>(t, o.from[0]), get<T>(t, o.from[1]))));
}

__extension__ using wide_signed = __int128;
__extension__ using wide_unsigned = unsigned __int128;
template <class T>
using wide_of =
    std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, wide_signed, wide_unsigned>,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
template <class T>
using twice_of =
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>;

// Without overflow: as numbers without sign.
template <class T>
constexpr auto add =
    [](T a, T b) { return std::make_unsigned_t<T>(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b)); };
template <class T>
constexpr auto sub =
    [](T a, T b) { return std::make_unsigned_t<T>(std::make_unsigned_t<T>(a) - std::make_unsigned_t<T>(b)); };
template <class T>
constexpr auto mul_lo = [](T a, T b) { return wide_of<T>(a) * wide_of<T>(b); };
template <class T>
constexpr auto mul_hi = [](T a, T b) { return (wide_of<T>(a) * wide_of<T>(b)) >> (8 * sizeof(T)); };
template <class T>
constexpr auto quotient = [](T a, T b) -> T {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(0 - std::make_unsigned_t<T>(a));
  return static_cast<T>(a / b);
};
template <class T>
constexpr auto rest = [](T a, T b) -> T {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
};
template <class T>
constexpr auto least = [](T a, T b) { return std::min(a, b); };
template <class T>
constexpr auto most = [](T a, T b) { return std::max(a, b); };
template <class T>
constexpr auto negative = [](T a) { return std::make_unsigned_t<T>(0 - std::make_unsigned_t<T>(a)); };
template <class T>
constexpr auto magnitude = [](T a) {
  return a < 0 ? std::make_unsigned_t<T>(0 - std::make_unsigned_t<T>(a)) : std::make_unsigned_t<T>(a);
};

template <class T>
void mad_lo(thread& t, i const& o) {
  using u = std::make_unsigned_t<T>;
  u const product = static_cast<u>(wide_of<u>(get<u>(t, o.from[0])) * wide_of<u>(get<u>(t, o.from[1])));
  put<T>(t, o.to, static_cast<T>(static_cast<u>(product + get<u>(t, o.from[2]))));
}
template <class T>
void mul_wide(thread& t, i const& o) {
  using w = twice_of<T>;
  put<w>(t, o.to, static_cast<w>(w{get<T>(t, o.from[0])} * w{get<T>(t, o.from[1])}));
}
template <class T>
void mad_wide(thread& t, i const& o) {
  using w = twice_of<T>;
  using u = std::make_unsigned_t<w>;
  u const product = static_cast<u>(w{get<T>(t, o.from[0])} * w{get<T>(t, o.from[1])});
  put<w>(t, o.to, static_cast<w>(static_cast<u>(product + get<u>(t, o.from[2]))));
}

// The amount has 32 bits, and no more than the width counts.
template <class T>
void shift_left(thread& t, i const& o) {
  std::uint32_t const by = get<std::uint32_t>(t, o.from[1]);
  put<T>(t, o.to, by >= 8 * sizeof(T) ? T{0} : static_cast<T>(get<T>(t, o.from[0]) << by));
}
template <class T>
void shift_right(thread& t, i const& o) {
  std::uint32_t const by = std::min<std::uint32_t>(get<std::uint32_t>(t, o.from[1]), 8 * sizeof(T));
  T const value = get<T>(t, o.from[0]);
  if (by == 8 * sizeof(T)) put<T>(t, o.to, value < 0 ? static_cast<T>(-1) : T{0});
  else put<T>(t, o.to, static_cast<T>(value >> by));
}
// shf: of two words. `detail`: 1 left, 2 the amount wraps.
void funnel(thread& t, i const& o) {
  std::uint64_t const both =
      (std::uint64_t{get<std::uint32_t>(t, o.from[1])} << 32) | get<std::uint32_t>(t, o.from[0]);
  std::uint32_t by = get<std::uint32_t>(t, o.from[2]);
  by = (o.detail & 2) != 0 ? by & 31 : std::min<std::uint32_t>(by, 32);
  put<std::uint32_t>(t, o.to,
                     static_cast<std::uint32_t>((o.detail & 1) != 0 ? (both << by) >> 32 : both >> by));
}

void permute(thread& t, i const& o) {
  std::uint64_t const both =
      (std::uint64_t{get<std::uint32_t>(t, o.from[1])} << 32) | get<std::uint32_t>(t, o.from[0]);
  std::uint32_t const how = get<std::uint32_t>(t, o.from[2]);
  std::uint32_t out = 0;
  for (unsigned k = 0; k < 4; ++k) {
    std::uint32_t const select = (how >> (4 * k)) & 15;
    auto byte = static_cast<std::uint8_t>(both >> (8 * (select & 7)));
    if ((select & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    out |= std::uint32_t{byte} << (8 * k);
  }
  put(t, o.to, out);
}

void lop3(thread& t, i const& o) {
  auto const a = get<std::uint32_t>(t, o.from[0]), b = get<std::uint32_t>(t, o.from[1]),
             c = get<std::uint32_t>(t, o.from[2]);
  auto const table = get<std::uint32_t>(t, o.from[3]);
  std::uint32_t out = 0;
  for (unsigned k = 0; k < 8; ++k)
    if (((table >> k) & 1) != 0)
      out |= ((k & 4) != 0 ? a : ~a) & ((k & 2) != 0 ? b : ~b) & ((k & 1) != 0 ? c : ~c);
  put(t, o.to, out);
}

template <class T>
void extract_bits(thread& t, i const& o) {
  T const a = get<T>(t, o.from[0]);
  std::uint32_t const at = get<std::uint32_t>(t, o.from[1]) & 255,
                      length = get<std::uint32_t>(t, o.from[2]) & 255;
  unsigned const width = 8 * sizeof(T);
  using u = std::make_unsigned_t<T>;
  u out = 0;
  bool const sign = std::is_signed_v<T> && length != 0 &&
                    ((static_cast<u>(a) >> std::min(at + length - 1, width - 1)) & 1) != 0;
  for (unsigned k = 0; k < width; ++k) {
    bool const bit = k < length && at + k < width ? ((static_cast<u>(a) >> (at + k)) & 1) != 0 : sign;
    if (bit) out |= u{1} << k;
  }
  put<T>(t, o.to, static_cast<T>(out));
}
template <class T>
void insert_bits(thread& t, i const& o) {
  T const a = get<T>(t, o.from[0]);
  T out = get<T>(t, o.from[1]);
  std::uint32_t const at = get<std::uint32_t>(t, o.from[2]) & 255,
                      length = get<std::uint32_t>(t, o.from[3]) & 255;
  for (unsigned k = 0; k < length && at + k < 8 * sizeof(T); ++k)
    out = static_cast<T>((out & ~(T{1} << (at + k))) | (((a >> k) & 1) << (at + k)));
  put<T>(t, o.to, out);
}

template <class T>
void count_leading(thread& t, i const& o) {
  put<std::uint32_t>(t, o.to, static_cast<std::uint32_t>(std::countl_zero(get<T>(t, o.from[0]))));
}
template <class T>
void count_ones(thread& t, i const& o) {
  put<std::uint32_t>(t, o.to, static_cast<std::uint32_t>(std::popcount(get<T>(t, o.from[0]))));
}
template <class T>
void find_leading(thread& t, i const& o) {
  using u = std::make_unsigned_t<T>;
  u a = get<u>(t, o.from[0]);
  if (std::is_signed_v<T> && static_cast<T>(a) < 0) a = static_cast<u>(~a);
  int const at = a == 0 ? -1 : static_cast<int>(8 * sizeof(T)) - 1 - std::countl_zero(a);
  put<std::uint32_t>(t, o.to,
                     o.detail != 0 && a != 0 ? static_cast<std::uint32_t>(std::countl_zero(a))
                                             : static_cast<std::uint32_t>(at));
}
template <class T>
void reverse(thread& t, i const& o) {
  T const a = get<T>(t, o.from[0]);
  T out = 0;
  for (unsigned k = 0; k < 8 * sizeof(T); ++k)
    if (((a >> k) & 1) != 0) out |= static_cast<T>(T{1} << (8 * sizeof(T) - 1 - k));
  put(t, o.to, out);
}

// setp: two predicates, of which the second is the first one's opposite.
template <class T, auto F>
void compare(thread& t, i const& o) {
  bool const holds = F(get<T>(t, o.from[0]), get<T>(t, o.from[1]));
  bool first = holds, second = !holds;
  if (o.from[2].kind != source_kind::none) {
    bool const other = get<bool>(t, o.from[2]) != ((o.detail & 8) != 0);
    auto const combined = [&](bool value) {
      return (o.detail & 3) == 0 ? value && other : (o.detail & 3) == 1 ? value || other : value != other;
    };
    first = combined(holds), second = combined(!holds);
  }
  put<std::uint32_t>(t, o.to, first);
  put<std::uint32_t>(t, o.to2, second);
}
template <class T>
execute_function comparison(std::string const& how) {
  if (how == "eq") return compare<T, [](T a, T b) { return a == b; }>;
  if (how == "ne") return compare<T, [](T a, T b) { return a != b; }>;
  if (how == "lt" || how == "lo") return compare<T, [](T a, T b) { return a < b; }>;
  if (how == "le" || how == "ls") return compare<T, [](T a, T b) { return a <= b; }>;
  if (how == "gt" || how == "hi") return compare<T, [](T a, T b) { return b < a; }>;
  if (how == "ge" || how == "hs") return compare<T, [](T a, T b) { return a >= b; }>;
  return nullptr;
}

template <class T>
void select(thread& t, i const& o) {
  put<T>(t, o.to, get<bool>(t, o.from[2]) ? get<T>(t, o.from[0]) : get<T>(t, o.from[1]));
}
template <class T>
void copy(thread& t, i const& o) {
  put<T>(t, o.to, get<T>(t, o.from[0]));
}
void copy_negated(thread& t, i const& o) { put<std::uint32_t>(t, o.to, !get<bool>(t, o.from[0])); }

// {a, b} = c, and c = {a, b}. `bytes`: of one part.
void unpack(thread& t, i const& o) {
  std::uint64_t const value = bits_of(t, o.from[0]);
  for (std::size_t k = 0; k < o.parts.size(); ++k)
    put<std::uint64_t>(t, o.parts[k],
                       (value >> (8 * o.bytes * k)) & ((std::uint64_t{1} << (8 * o.bytes)) - 1));
}
void pack(thread& t, i const& o) {
  std::uint64_t value = 0;
  for (std::size_t k = 0; k < o.parts.size(); ++k)
    value |= (bits_of(t, o.parts[k]) & ((std::uint64_t{1} << (8 * o.bytes)) - 1)) << (8 * o.bytes * k);
  put(t, o.to, value);
}

// Of 128 bits: two registers.
source upper_of(source const& pair) { return {pair.kind, static_cast<std::uint16_t>(pair.index + 1), 0}; }
void unpack_pair(thread& t, i const& o) {
  std::uint64_t const low = bits_of(t, o.from[0]), high = bits_of(t, upper_of(o.from[0]));
  put(t, o.parts[0], low);
  put(t, o.parts[1], high);
}
void pack_pair(thread& t, i const& o) {
  std::uint64_t const low = bits_of(t, o.parts[0]), high = bits_of(t, o.parts[1]);
  put(t, o.to, low);
  put(t, upper_of(o.to), high);
}

template <class T>
execute_function of_type(statement const& s, i& o) {
  std::string const& op = s.opcode[0];
  using u = std::make_unsigned_t<T>;
  if (op == "add" && !s.has("cc") && !s.has("sat")) return binary<T, add<T>>;
  if (op == "sub" && !s.has("cc") && !s.has("sat")) return binary<T, sub<T>>;
  if (op == "mul" && s.has("lo")) return binary<T, mul_lo<u>>;
  if (op == "mul" && s.has("hi")) return binary<T, mul_hi<T>>;
  if constexpr (sizeof(T) < 8) {
    if (op == "mul" && s.has("wide")) return mul_wide<T>;
    if (op == "mad" && s.has("wide")) return mad_wide<T>;
  }
  if (op == "mad" && s.has("lo") && !s.has("cc")) return mad_lo<T>;
  if (op == "div") return binary<T, quotient<T>>;
  if (op == "rem") return binary<T, rest<T>>;
  if (op == "min") return binary<T, least<T>>;
  if (op == "max") return binary<T, most<T>>;
  if (op == "neg") return unary<T, negative<T>>;
  if constexpr (std::is_signed_v<T>)
    if (op == "abs") return unary<T, magnitude<T>>;
  if (op == "shl") return shift_left<u>;
  if (op == "shr") return shift_right<T>;
  if (op == "bfe" && sizeof(T) >= 4) return extract_bits<T>;
  if (op == "bfind") {
    o.detail = s.has("shiftamt");
    return find_leading<T>;
  }
  if (op == "setp") {
    for (std::size_t k = 2; k < s.opcode.size(); ++k) {
      if (s.opcode[k] == "or") o.detail |= 1;
      if (s.opcode[k] == "xor") o.detail |= 2;
    }
    if (s.operands.size() > 3 && s.operands[3].negated) o.detail |= 8;
    return comparison<T>(s.opcode[1]);
  }
  return nullptr;
}

template <class T>
execute_function of_bits(statement const& s, i& o) {
  std::string const& op = s.opcode[0];
  if (op == "and") return binary<T, [](T a, T b) { return a & b; }>;
  if (op == "or") return binary<T, [](T a, T b) { return a | b; }>;
  if (op == "xor") return binary<T, [](T a, T b) { return a ^ b; }>;
  if (op == "not") return unary<T, [](T a) { return static_cast<T>(~a); }>;
  if (op == "shl") return shift_left<T>;
  if (op == "shr") return shift_right<T>;
  if (op == "clz") return count_leading<T>;
  if (op == "popc") return count_ones<T>;
  if (op == "brev") return reverse<T>;
  if (op == "bfi") return insert_bits<T>;
  if (op == "selp") return select<T>;
  if (op == "setp") return of_type<T>(s, o);
  if (op == "mov") return copy<T>;
  return nullptr;
}

execute_function of_predicates(statement const& s) {
  std::string const& op = s.opcode[0];
  if (op == "and") return binary<bool, [](bool a, bool b) { return a && b; }>;
  if (op == "or") return binary<bool, [](bool a, bool b) { return a || b; }>;
  if (op == "xor") return binary<bool, [](bool a, bool b) { return a != b; }>;
  if (op == "not") return copy_negated;
  if (op == "mov") return copy<bool>;
  return nullptr;
}

execute_function decode_moved_parts(statement const& s, i& o) {
  if (s.opcode[0] != "mov") return nullptr;
  bool const unpacks = s.operands[0].name == "{}", packs = s.operands[1].name == "{}";
  if (!unpacks && !packs) return nullptr;
  o.parts = unpacks ? s.operands[0].vector : s.operands[1].vector;
  std::size_t const whole = bytes_of_type(s.last());
  if (whole == 16) {
    if (o.parts.size() != 2) throw std::runtime_error("128 bits that are not two words");
    return unpacks ? unpack_pair : pack_pair;
  }
  o.bytes = static_cast<std::uint8_t>(whole / o.parts.size());
  return unpacks ? unpack : pack;
}

}  // namespace

execute_function decode_integers(statement const& s, instruction& o) {
  if (s.opcode.size() < 2) return nullptr;
  if (execute_function const f = decode_moved_parts(s, o)) return f;
  std::string const& type = s.last();
  std::string const& op = s.opcode[0];
  if (op == "shf") {
    o.detail = static_cast<std::uint8_t>((s.has("l") ? 1 : 0) | (s.has("wrap") ? 2 : 0));
    return funnel;
  }
  if (op == "prmt" && s.opcode.size() == 2) return permute;
  if (op == "lop3" && s.operands.size() == 5) return lop3;
  if (type == "pred") return of_predicates(s);
  if (type == "b16") return of_bits<std::uint16_t>(s, o);
  if (type == "b32") return of_bits<std::uint32_t>(s, o);
  if (type == "b64") return of_bits<std::uint64_t>(s, o);
  if (op == "selp" || op == "mov") {
    std::size_t const bytes = bytes_of_type(type);
    if (op == "mov")
      return bytes == 2 ? copy<std::uint16_t> : bytes == 4 ? copy<std::uint32_t> : copy<std::uint64_t>;
    return bytes == 2 ? select<std::uint16_t> : bytes == 4 ? select<std::uint32_t> : select<std::uint64_t>;
  }
  if (type == "u16") return of_type<std::uint16_t>(s, o);
  if (type == "u32") return of_type<std::uint32_t>(s, o);
  if (type == "u64") return of_type<std::uint64_t>(s, o);
  if (type == "s16") return of_type<std::int16_t>(s, o);
  if (type == "s32") return of_type<std::int32_t>(s, o);
  if (type == "s64") return of_type<std::int64_t>(s, o);
  return nullptr;
}

}  // namespace emulated
