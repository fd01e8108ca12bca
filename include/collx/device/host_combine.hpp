// SPDX-License-Identifier: Apache-2.0
// How a host processor copies and reduces: m sources combined, in order, into k destinations in
// one pass over memory. Called by the host executor with memory that peers may be reading.
#pragma once

#include <cstring>

#include "collx/op/reduction.hpp"

namespace collx::inline abi_1::device {

// Elements that one block holds while m sources are folded into it: small enough to stay in the
// first-level cache, large enough that the compiler's vector loop dominates.
template <class T>
inline constexpr std::size_t block_elements = sizeof(T) >= 2048 ? 1 : 2048 / sizeof(T);

// dst = op(a, b), element by element. dst may be a or b, but must not overlap them otherwise.
template <class T, class Op>
COLLX_ALWAYS_INLINE void combine_two(T* dst, T const* a, T const* b, std::size_t count, Op const& op) {
  COLLX_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < count; ++i) dst[i] = static_cast<T>(op(a[i], b[i]));
}

// Applies what an operator does to the complete value. No-op for operators without `finish`.
template <class T, class Op>
COLLX_ALWAYS_INLINE void finish(T* values, std::size_t count, Op const& op, rank_t size) {
  if constexpr (requires { op.finish(values[0], size); })
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(op.finish(values[i], size));
}

// Folds the sources into `block`, wide: partial results stay in the accumulate type.
template <class T, class Op>
void fold_block(T* block, T const* const* sources, std::int32_t source_count, std::size_t at, std::size_t count,
                Op const& op, bool complete, rank_t size) {
  using wide = accumulate_t<Op, T>;
  if constexpr (std::is_same_v<wide, T>) {
    if (source_count == 1) std::memcpy(block, sources[0] + at, count * sizeof(T));
    else combine_two(block, sources[0] + at, sources[1] + at, count, op);
    for (std::int32_t k = 2; k < source_count; ++k) combine_two(block, block, sources[k] + at, count, op);
    if (complete) finish(block, count, op, size);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      wide total = static_cast<wide>(sources[0][at + i]);
      for (std::int32_t k = 1; k < source_count; ++k)
        total = static_cast<wide>(op(total, static_cast<wide>(sources[k][at + i])));
      if (complete) finish(&total, 1, op, size);
      block[i] = static_cast<T>(total);
    }
  }
}

// destinations[j][i] = op(sources[0][i], sources[1][i], ...), folded from the left, for i < count.
//
// A destination may be one of the sources (exactly, not shifted); all sources of an element are
// read before it is written. With `complete`, the operator's finish() is applied.
template <class T, class Op>
void combine(T* const* destinations, std::int32_t destination_count, T const* const* sources,
             std::int32_t source_count, std::size_t count, Op const& op, bool complete, rank_t size) {
  constexpr bool plain = std::is_same_v<accumulate_t<Op, T>, T>;
  constexpr bool finishes = requires(T value) { op.finish(value, size); };
  if constexpr (plain) {
    if (source_count == 2 && destination_count == 1 && !(finishes && complete))
      return combine_two(destinations[0], sources[0], sources[1], count, op);
  }
  alignas(64) std::byte raw[block_elements<T> * sizeof(T)];
  T* const block = reinterpret_cast<T*>(raw);
  for (std::size_t at = 0; at < count; at += block_elements<T>) {
    std::size_t const n = count - at < block_elements<T> ? count - at : block_elements<T>;
    fold_block(block, sources, source_count, at, n, op, complete, size);
    for (std::int32_t j = 0; j < destination_count; ++j) std::memcpy(destinations[j] + at, block, n * sizeof(T));
  }
}

}  // namespace collx::inline abi_1::device
