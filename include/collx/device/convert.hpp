// SPDX-License-Identifier: Apache-2.0
// From the element type to the accumulate type and back, a register or a block at a time: what the
// loops of host_combine.hpp do with elements before and after they combine them.
#pragma once

#include <cstring>
#include <type_traits>

#include "collx/device/stream.hpp"
#include "collx/op/small_float.hpp"

namespace collx::inline abi_1::device::detail {

// Elements that the vector loops take at a time. A trip count the compiler knows is what lets it
// use vector registers at every optimisation level, without run-time checks for overlap.
template <class T>
inline constexpr std::size_t lane_elements = sizeof(T) >= 64 ? 1 : 64 / sizeof(T);

// The same where they are converted. Loops of 16 and fewer GCC unrolls before it looks for vectors, and
// then finds none in a conversion.
template <class T, class Wide>
inline constexpr std::size_t converted_elements =
    std::is_same_v<T, Wide> ? lane_elements<T> : lane_elements<T> < 32 ? 32 : lane_elements<T>;

// Where a loop runs: on any processor, or inside a function that is compiled for wide vectors.
enum class vectors : bool { any, wide };

// What wide code is compiled as: the same as any other, and so once, unless it has instructions for T.
template <class T>
inline constexpr vectors wide_for = std::is_same_v<T, float16> ? vectors::wide : vectors::any;

inline constexpr std::size_t float16_line = 16;

#if defined(COLLX_WIDE_VECTORS)
// float16 has instructions of its own; they round, and treat NaNs, as op/small_float.hpp does.
typedef char float16_vector __attribute__((vector_size(32), may_alias));

COLLX_WIDE_VECTORS inline void widen_line(float* to, float16 const* from) noexcept {
  float16_vector narrow;
  line_vector wide;
  std::memcpy(&narrow, from, sizeof narrow);
  asm("vcvtph2ps %1, %0" : "=v"(wide) : "v"(narrow));
  std::memcpy(to, &wide, sizeof wide);
}

COLLX_WIDE_VECTORS inline void narrow_line(float16* to, float const* from) noexcept {
  line_vector wide;
  float16_vector narrow;
  std::memcpy(&wide, from, sizeof wide);
  asm("vcvtps2ph $0, %1, %0" : "=v"(narrow) : "v"(wide));
  std::memcpy(static_cast<void*>(to), &narrow, sizeof narrow);
}

template <vectors On, std::size_t N, class Wide, class T>
inline constexpr bool converts_float16 = On == vectors::wide && N % float16_line == 0 &&
                                         std::is_same_v<T, float16> && std::is_same_v<Wide, float>;
#else
template <vectors, std::size_t, class, class>
inline constexpr bool converts_float16 = false;
#endif

template <vectors On, std::size_t N, class Wide, class T>
COLLX_VECTOR_INLINE void widen(Wide* to, T const* from) {
  if constexpr (std::is_same_v<Wide, T>) {
    std::memcpy(to, from, N * sizeof(T));
  } else if constexpr (converts_float16<On, N, Wide, T>) {
    for (std::size_t i = 0; i < N; i += float16_line) widen_line(to + i, from + i);
  } else {
    T lane[N];
    std::memcpy(lane, from, sizeof lane);
    for (std::size_t i = 0; i < N; ++i) to[i] = static_cast<Wide>(lane[i]);
  }
}

template <vectors On, std::size_t N, class Wide, class T>
COLLX_VECTOR_INLINE void narrow(T* to, Wide const* from) {
  if constexpr (std::is_same_v<Wide, T>) {
    std::memcpy(to, from, N * sizeof(T));
  } else if constexpr (converts_float16<On, N, Wide, T>) {
    for (std::size_t i = 0; i < N; i += float16_line) narrow_line(to + i, from + i);
  } else {
    T lane[N];
    for (std::size_t i = 0; i < N; ++i) lane[i] = static_cast<T>(from[i]);
    std::memcpy(to, lane, sizeof lane);
  }
}

// The same for any number of elements.
template <vectors On, class Wide, class T>
COLLX_VECTOR_INLINE void widen_many(Wide* to, T const* from, std::size_t count) {
  constexpr std::size_t lanes = converted_elements<T, Wide>;
  if constexpr (std::is_same_v<Wide, T>) {
    std::memcpy(to, from, count * sizeof(T));
    return;
  }
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) widen<On, lanes>(to + i, from + i);
  for (; i < count; ++i) widen<On, 1>(to + i, from + i);
}

template <vectors On, class Wide, class T>
COLLX_VECTOR_INLINE void narrow_many(T* to, Wide const* from, std::size_t count) {
  constexpr std::size_t lanes = converted_elements<T, Wide>;
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) narrow<On, lanes>(to + i, from + i);
  for (; i < count; ++i) narrow<On, 1>(to + i, from + i);
}

}  // namespace collx::inline abi_1::device::detail
