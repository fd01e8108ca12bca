// SPDX-License-Identifier: Apache-2.0
// From the element type to the accumulate type and back, a register or a block at a time: what the
// loops of host_combine.hpp do with elements before and after they combine them.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "collx/device/stream.hpp"
#include "collx/op/small_float.hpp"

namespace collx::inline abi_1::device::detail {

// Whether a kind of vectors has instructions for the conversion.
template <class On, class T, class Wide>
inline constexpr bool converts_float16 = std::is_same_v<T, float16> && std::is_same_v<Wide, float> &&
                                         On::converts_float16;

// Elements that the vector loops take at a time. A trip count the compiler knows is what lets it use vector
// registers at every optimisation level, without run-time checks for overlap. One vector, where no loop has
// to convert them: GCC keeps in memory what it takes a loop of several to compute. Else what the compilers
// convert best: a line, but GCC two vectors of the wider type (0.7 of the time for bfloat16 with AVX2, 0.4
// for floats in doubles), unless it finds no vectors in these either. Powers of two: lanes fill vectors.
template <class On, class T, class Wide>
inline constexpr std::size_t lane_elements = [] {
  std::size_t const of_vector = sizeof(Wide) >= On::vector_bytes ? 1 : On::vector_bytes / sizeof(Wide);
  if (std::is_same_v<T, Wide> || converts_float16<On, T, Wide>) return of_vector;
#if !defined(__clang__)
  if (sizeof(T) > 1 && !std::is_same_v<T, float16>) return 2 * std::bit_floor(of_vector);
#endif
  return sizeof(T) >= line_bytes ? std::size_t{1} : std::bit_floor(line_bytes / sizeof(T));
}();

template <class On, std::size_t N, class Wide, class T>
COLLX_VECTOR_INLINE void widen(Wide* to, T const* from) {
  if constexpr (std::is_same_v<Wide, T>) {
    copy_vectors<On, N * sizeof(T)>(to, from);
  } else if constexpr (converts_float16<On, T, Wide> && N % (On::vector_bytes / sizeof(float)) == 0) {
    for (std::size_t i = 0; i < N; i += On::vector_bytes / sizeof(float)) On::widen_float16(to + i, from + i);
  } else {
    T lane[N];
    copy_vectors<On, sizeof lane>(lane, from);
    COLLX_LOOP_TO_VECTOR
    for (std::size_t i = 0; i < N; ++i) to[i] = static_cast<Wide>(lane[i]);
  }
}

template <class On, std::size_t N, class Wide, class T>
COLLX_VECTOR_INLINE void narrow(T* to, Wide const* from) {
  if constexpr (std::is_same_v<Wide, T>) {
    copy_vectors<On, N * sizeof(T)>(to, from);
  } else if constexpr (converts_float16<On, T, Wide> && N % (On::vector_bytes / sizeof(float)) == 0) {
    for (std::size_t i = 0; i < N; i += On::vector_bytes / sizeof(float))
      On::narrow_float16(to + i, from + i);
  } else {
    T lane[N];
    COLLX_LOOP_TO_VECTOR
    for (std::size_t i = 0; i < N; ++i) lane[i] = static_cast<T>(from[i]);
    copy_vectors<On, sizeof lane>(to, lane);
  }
}

// The same for any number of elements.
template <class On, class Wide, class T>
COLLX_VECTOR_INLINE void widen_many(Wide* to, T const* from, std::size_t count) {
  constexpr std::size_t lanes = lane_elements<On, T, Wide>;
  if constexpr (std::is_same_v<Wide, T>) {
    std::memcpy(to, from, count * sizeof(T));
    return;
  }
  std::size_t i = 0;
  COLLX_LOOP_OF_VECTORS
  for (; i + lanes <= count; i += lanes) widen<On, lanes>(to + i, from + i);
  for (; i < count; ++i) widen<On, 1>(to + i, from + i);
}

template <class On, class Wide, class T>
COLLX_VECTOR_INLINE void narrow_many(T* to, Wide const* from, std::size_t count) {
  constexpr std::size_t lanes = lane_elements<On, T, Wide>;
  std::size_t i = 0;
  COLLX_LOOP_OF_VECTORS
  for (; i + lanes <= count; i += lanes) narrow<On, lanes>(to + i, from + i);
  for (; i < count; ++i) narrow<On, 1>(to + i, from + i);
}

}  // namespace collx::inline abi_1::device::detail
