// SPDX-License-Identifier: Apache-2.0
// How a team of threads copies: one source to k destinations, read once, in any alignment.
#pragma once

#include <type_traits>

#include "collx/device/pack.hpp"
#include "collx/device/team.hpp"

namespace collx::inline abi_1::device {

namespace detail {

// What a thread has in flight. More than a reduction: there is one source only.
inline constexpr std::size_t copied_units = 8;

// What is copied between two boundaries, and what lies outside of them: a piece of an element, as it is
// aligned.
template <std::size_t Bytes>
using copied_word =
    std::conditional_t<Bytes == 1, std::uint8_t,
                       std::conditional_t<Bytes == 2, std::uint16_t,
                                          std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;

template <class Unit>
[[nodiscard]] COLLX_HD_INLINE Unit load_unit(std::byte const* from) noexcept {
  if constexpr (std::is_same_v<Unit, vector>) {
    return load_vector(from);
  } else {
    Unit loaded;
    __builtin_memcpy(&loaded, __builtin_assume_aligned(from, sizeof loaded), sizeof loaded);
    return loaded;
  }
}

template <class Unit>
COLLX_HD_INLINE void store_unit(std::byte* to, Unit const& stored) noexcept {
  if constexpr (std::is_same_v<Unit, vector>) store_vector(to, stored);
  else __builtin_memcpy(__builtin_assume_aligned(to, sizeof stored), &stored, sizeof stored);
}

// `Count` units: all are read before any is written.
template <class Unit, std::size_t Count, class T>
COLLX_HD_INLINE void copy_units(T* const* destinations, int destination_count, T const* source,
                                places const& where, std::size_t first, std::size_t stride) {
  std::byte const* const from = reinterpret_cast<std::byte const*>(source);
  Unit read[Count];
  COLLX_UNROLL
  for (std::size_t u = 0; u < Count; ++u) read[u] = load_unit<Unit>(from + where.at(first + u * stride));
  COLLX_NO_UNROLL
  for (int j = 0; j < destination_count; ++j) {
    std::byte* const to = reinterpret_cast<std::byte*>(destinations[j]);
    COLLX_UNROLL
    for (std::size_t u = 0; u < Count; ++u) store_unit(to + where.at(first + u * stride), read[u]);
  }
}

// The bytes at these places, of which there are whole units; `Count` of them at a time.
template <class Unit, std::size_t Count, class T, team Team>
COLLX_HD_INLINE void copy_places(Team const& threads, T* const* destinations, int destination_count,
                                 T const* source, places const& where) {
  std::size_t const stride = sizeof(Unit) * static_cast<std::size_t>(threads.size());
  std::size_t at = sizeof(Unit) * static_cast<std::size_t>(threads.rank());
  COLLX_NO_UNROLL
  for (; at + (Count - 1) * stride < where.count; at += Count * stride)
    copy_units<Unit, Count>(destinations, destination_count, source, where, at, stride);
  COLLX_NO_UNROLL
  for (; at < where.count; at += stride)
    copy_units<Unit, 1>(destinations, destination_count, source, where, at, stride);
}

// Elements begin .. begin + count - 1, `Count` vectors at a time.
template <std::size_t Count, class T, team Team>
COLLX_HD_INLINE void copy_piece(Team const& threads, T* const* destinations, int destination_count,
                                T const* source, std::size_t begin, std::size_t count) {
  constexpr std::size_t word_bytes = alignof(T) < 8 ? alignof(T) : 8;
  constexpr std::size_t words = vector_bytes / word_bytes;
  // A word takes at most half of the registers that a vector takes.
  constexpr std::size_t words_at_once = 2 * Count < copied_units ? 2 * Count : copied_units;
  std::size_t const bytes = count * sizeof(T);
  alignment all;
  all.add(source + begin);
  COLLX_NO_UNROLL
  for (int j = 0; j < destination_count; ++j) all.add(destinations[j] + begin);
  std::size_t const steps = all.steps(word_bytes, words);
  std::size_t head = steps * word_bytes, whole = 0;
  if (steps < words && head < bytes) whole = (bytes - head) / vector_bytes * vector_bytes;
  if (whole == 0) head = 0;
  std::size_t const at = begin * sizeof(T);
  copy_places<vector, Count>(threads, destinations, destination_count, source, {at + head, whole, whole, 0});
  copy_places<copied_word<word_bytes>, words_at_once>(threads, destinations, destination_count, source,
                                                      {at, bytes - whole, head, whole});
}

}  // namespace detail

// destinations[j][i] = source[i] for i < count, bit for bit. As with combine(), a destination may be the
// source, and nothing is synchronised. destination_count >= 0.
template <class T, team Team>
COLLX_HD void copy(Team& threads, T* const* destinations, int destination_count, T const* source,
                   std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  detail::copy_piece<detail::copied_units>(threads, destinations, destination_count, source, 0, count);
}

}  // namespace collx::inline abi_1::device
