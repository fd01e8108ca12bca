// SPDX-License-Identifier: Apache-2.0
// FNV-1a (Fowler, Noll, Vo): numbers that tell names and bytes apart, the same in every process, on every
// machine and while compiling. Not for what somebody may forge: bytes with a given number are quickly found.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collx/core/config.hpp"

namespace collx::inline abi_1 {

// The numbers of no bytes.
inline constexpr std::uint32_t fnv1a_32_of_nothing = 0x811c9dc5u;
inline constexpr std::uint64_t fnv1a_64_of_nothing = 0xcbf29ce484222325u;

namespace detail {

template <class Number, Number Prime, class Byte>
[[nodiscard]] constexpr Number fnv1a(Byte const* bytes, std::size_t count, Number before) noexcept {
  static_assert(sizeof(Byte) == 1, "collx: larger objects have other bytes on other machines");
  for (std::size_t i = 0; i < count; ++i) before = (before ^ static_cast<unsigned char>(bytes[i])) * Prime;
  return before;
}

}  // namespace detail

// Of `count` bytes that come behind those of which `before` is the number. Whoever puts texts together passes
// their zeros, too: "1", "23" is not "12", "3".
template <class Byte>
[[nodiscard]] constexpr std::uint32_t fnv1a_32(Byte const* bytes, std::size_t count,
                                               std::uint32_t before = fnv1a_32_of_nothing) noexcept {
  return detail::fnv1a<std::uint32_t, 0x01000193u>(bytes, count, before);
}
template <class Byte>
[[nodiscard]] constexpr std::uint64_t fnv1a_64(Byte const* bytes, std::size_t count,
                                               std::uint64_t before = fnv1a_64_of_nothing) noexcept {
  return detail::fnv1a<std::uint64_t, 0x100000001b3u>(bytes, count, before);
}

// Of a text without its zero.
[[nodiscard]] constexpr std::uint32_t fnv1a_32(char const* text) noexcept {
  return fnv1a_32(text, __builtin_strlen(text));
}
[[nodiscard]] constexpr std::uint64_t fnv1a_64(char const* text) noexcept {
  return fnv1a_64(text, __builtin_strlen(text));
}

}  // namespace collx::inline abi_1
