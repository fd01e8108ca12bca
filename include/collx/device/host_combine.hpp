// SPDX-License-Identifier: Apache-2.0
// How a host processor copies and reduces: m sources combined, in order, into k destinations in
// one pass over memory. Called by the host executor with memory that peers may be reading.
#pragma once

#include <cstring>

#include "collx/device/convert.hpp"
#include "collx/device/stream.hpp"
#include "collx/op/reduction.hpp"

namespace collx::inline abi_1::device {

namespace detail {

// Elements that one block holds while many sources are folded into it: it stays in the first-level
// cache between sources.
template <class T>
inline constexpr std::size_t block_elements = sizeof(T) >= 4096 ? 1 : 4096 / sizeof(T);

// N elements from two sources to one or two outputs (`second` may be null), in registers, through the
// accumulate type. Local arrays rather than references: a destination may be a source, and the compiler
// need not ask.
template <vectors On, std::size_t N, bool Finish, class T, class Op>
COLLX_VECTOR_INLINE void combine_lane(T* first, T* second, T const* a, T const* b, Op const& op,
                                      rank_t size) {
  using wide = accumulate_t<Op, T>;
  wide x[N], y[N];
  T result[N];
  widen<On, N>(x, a);
  widen<On, N>(y, b);
  for (std::size_t i = 0; i < N; ++i) {
    x[i] = static_cast<wide>(op(x[i], y[i]));
    if constexpr (Finish) x[i] = static_cast<wide>(op.finish(x[i], size));
  }
  narrow<On, N>(result, x);
  std::memcpy(first, result, sizeof result);
  if (second != nullptr) std::memcpy(second, result, sizeof result);
}

// One loop for one output and for two: a branch that is always predicted costs nothing beside a cache
// line of elements, and a loop for each would cost every user's compiler as much again.
template <vectors On, bool Finish, class T, class Op>
COLLX_VECTOR_INLINE void combine_lanes(T* first, T* second, T const* a, T const* b, std::size_t count,
                                       Op const& op, rank_t size) {
  constexpr std::size_t lanes = lane_elements<T>;
  std::size_t const whole = count - count % lanes;
  for (std::size_t at = 0; at < whole; at += lanes)
    combine_lane<On, lanes, Finish>(first + at, second == nullptr ? nullptr : second + at, a + at, b + at, op,
                                    size);
  for (std::size_t at = whole; at < count; ++at)
    combine_lane<On, 1, Finish>(first + at, second == nullptr ? nullptr : second + at, a + at, b + at, op,
                                size);
}

// Whether code for other processors gives the same bits. An operator that multiplies and adds may be
// rounded once by the one and twice by the other; it is then left to the one, however few the elements.
template <class T, class Op>
inline constexpr bool rounds_alike =
    std::is_base_of_v<library_operator, Op> && (std::is_arithmetic_v<T> || is_small_float<T>);

#if defined(COLLX_WIDE_VECTORS)
template <bool Finish, class T, class Op>
COLLX_WIDE_VECTORS void combine_lanes_wide(T* first, T* second, T const* a, T const* b, std::size_t count,
                                           Op const& op, rank_t size) {
  combine_lanes<wide_for<T>, Finish>(first, second, a, b, count, op, size);
}

// How far ahead of a streaming loop its sources are fetched, where the hardware stops at page ends, which
// come often in two sources and two outputs. Worth 5 % from 128 KiB on; twice as far is no better.
inline constexpr std::size_t prefetch_lines = 8;

// Whole lines, past the caches for the first `streamed` outputs, which begin on a cache line. Returns
// how many elements that were.
template <bool Finish, class T, class Op>
COLLX_WIDE_VECTORS std::size_t combine_lines_streamed(T* first, T* second, T const* a, T const* b,
                                                      std::size_t count, Op const& op, rank_t size,
                                                      std::int32_t streamed) {
  constexpr std::size_t lanes = lane_elements<T>;
  alignas(line_bytes) T x[lanes];
  bool const helped = cpu::wants_help_fetching;
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    if (helped) {
      __builtin_prefetch(a + at + prefetch_lines * lanes);
      __builtin_prefetch(b + at + prefetch_lines * lanes);
    }
    combine_lane<wide_for<T>, lanes, Finish>(x, static_cast<T*>(nullptr), a + at, b + at, op, size);
    stream_line(first + at, x);
    if (second == nullptr) continue;
    if (streamed == 2) stream_line(second + at, x);
    else std::memcpy(second + at, x, sizeof x);
  }
  fence_streams();
  return at;
}

// Elements before the first that begins a cache line; -1 where none does.
template <class T>
[[nodiscard]] std::ptrdiff_t elements_to_line(T const* p) noexcept {
  std::uintptr_t const offset = reinterpret_cast<std::uintptr_t>(p) % line_bytes;
  if (line_bytes % sizeof(T) != 0 || offset % sizeof(T) != 0) return -1;
  return static_cast<std::ptrdiff_t>((line_bytes - offset) % line_bytes / sizeof(T));
}

// All of it wide: code for other processors may round an operator that multiplies and adds otherwise.
template <bool Finish, class T, class Op>
COLLX_NEVER_INLINE void combine_two_wide(T* first, T* second, T const* a, T const* b, std::size_t count,
                                         Op const& op, rank_t size, std::int32_t streamed) {
  std::size_t at = 0;
  std::ptrdiff_t const to_line = streamed == 0 ? -1 : elements_to_line(first);
  if (to_line >= 0 && static_cast<std::size_t>(to_line) <= count) {
    // The second can only be streamed with the first if both reach a line after as many elements.
    if (streamed == 2 && elements_to_line(second) != to_line) streamed = 1;
    at = static_cast<std::size_t>(to_line);
    combine_lanes_wide<Finish>(first, second, a, b, at, op, size);
    at += combine_lines_streamed<Finish>(first + at, second == nullptr ? nullptr : second + at, a + at,
                                         b + at, count - at, op, size, streamed);
  }
  combine_lanes_wide<Finish>(first + at, second == nullptr ? nullptr : second + at, a + at, b + at,
                             count - at, op, size);
}
#endif

// Two sources and one or two outputs: nearly every step of every algorithm.
template <bool Finish, class T, class Op>
COLLX_ALWAYS_INLINE void combine_two(T* first, T* second, T const* a, T const* b, std::size_t count,
                                     Op const& op, rank_t size, std::int32_t streamed) {
#if defined(COLLX_WIDE_VECTORS)
  if ((!rounds_alike<T, Op> || count >= 4 * lane_elements<T>) && cpu::wide_vectors)
    return combine_two_wide<Finish>(first, second, a, b, count, op, size, streamed);
#else
  (void)streamed;
#endif
  combine_lanes<detail::vectors::any, Finish>(first, second, a, b, count, op, size);
}

// Folds sources[0 .. source_count) in `block`, in the accumulate type, and puts the result into
// `result`: the block itself where both types are the same.
template <vectors On, class T, class Op>
COLLX_VECTOR_INLINE void fold_lanes(T* result, accumulate_t<Op, T>* block, T const* const* sources,
                                    std::int32_t source_count, std::size_t at, std::size_t count,
                                    Op const& op, bool complete, rank_t size) {
  using wide = accumulate_t<Op, T>;
  constexpr std::size_t lanes = converted_elements<T, wide>;
  widen_many<On>(block, sources[0] + at, count);
  for (std::int32_t k = 1; k < source_count; ++k) {
    T const* const source = sources[k] + at;
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      wide x[lanes], y[lanes];
      std::memcpy(x, block + i, sizeof x);
      widen<On, lanes>(y, source + i);
      for (std::size_t j = 0; j < lanes; ++j) x[j] = static_cast<wide>(op(x[j], y[j]));
      std::memcpy(block + i, x, sizeof x);
    }
    for (; i < count; ++i) block[i] = static_cast<wide>(op(block[i], static_cast<wide>(source[i])));
  }
  if constexpr (finishes<Op, wide>)
    for (std::size_t i = 0; complete && i < count; ++i)
      block[i] = static_cast<wide>(op.finish(block[i], size));
  if constexpr (!std::is_same_v<wide, T>) narrow_many<On>(result, block, count);
}

#if defined(COLLX_WIDE_VECTORS)
template <class T, class Op>
COLLX_WIDE_VECTORS void fold_wide(T* result, accumulate_t<Op, T>* block, T const* const* sources,
                                  std::int32_t source_count, std::size_t at, std::size_t count, Op const& op,
                                  bool complete, rank_t size) {
  fold_lanes<wide_for<T>>(result, block, sources, source_count, at, count, op, complete, size);
}
#endif

template <class T, class Op>
void fold(T* result, accumulate_t<Op, T>* block, T const* const* sources, std::int32_t source_count,
          std::size_t at, std::size_t count, Op const& op, bool complete, rank_t size) {
#if defined(COLLX_WIDE_VECTORS)
  if (cpu::wide_vectors)
    return fold_wide(result, block, sources, source_count, at, count, op, complete, size);
#endif
  fold_lanes<detail::vectors::any>(result, block, sources, source_count, at, count, op, complete, size);
}

// Any number of sources and destinations, block by block. Apart from combine(): two sources need none of
// this stack.
template <class T, class Op>
COLLX_NEVER_INLINE void combine_many(T* const* destinations, std::int32_t destination_count,
                                     T const* const* sources, std::int32_t source_count, std::size_t count,
                                     Op const& op, bool complete, rank_t size, std::int32_t streamed) {
  using wide = accumulate_t<Op, T>;
  constexpr std::size_t block_count = block_elements<T>;
  constexpr bool narrows = !std::is_same_v<wide, T>;
  alignas(64) std::byte raw[block_count * sizeof(wide)];
  alignas(64) std::byte narrowed[narrows ? block_count * sizeof(T) : 1];
  std::byte* const result = narrows ? narrowed : raw;
  for (std::size_t at = 0; at < count; at += block_count) {
    std::size_t const n = count - at < block_count ? count - at : block_count;
    fold(reinterpret_cast<T*>(result), reinterpret_cast<wide*>(raw), sources, source_count, at, n, op,
         complete, size);
    for (std::int32_t j = 0; j < destination_count; ++j)
      copy(reinterpret_cast<std::byte*>(destinations[j] + at), result, n * sizeof(T), j < streamed);
  }
}

}  // namespace detail

// destinations[j][i] = op(sources[0][i], sources[1][i], ...), folded from the left, for i < count.
//
// A destination may be one of the sources (exactly, not shifted); all sources of an element are
// read before it is written. With `complete`, the operator's finish() is applied to the result. The
// first `streamed` destinations will not be read soon and may be stored past the caches; what was
// stored so is visible before any store the caller does afterwards.
template <class T, class Op>
void combine(T* const* destinations, std::int32_t destination_count, T const* const* sources,
             std::int32_t source_count, std::size_t count, Op const& op, bool complete, rank_t size,
             std::int32_t streamed = 0) {
  if (source_count == 2 && (destination_count == 1 || destination_count == 2)) {
    T* const first = destinations[0];
    T* const second = destination_count == 2 ? destinations[1] : nullptr;
    if constexpr (finishes<Op, accumulate_t<Op, T>>) {
      if (complete)
        return detail::combine_two<true>(first, second, sources[0], sources[1], count, op, size, streamed);
    }
    return detail::combine_two<false>(first, second, sources[0], sources[1], count, op, size, streamed);
  }
  detail::combine_many(destinations, destination_count, sources, source_count, count, op, complete, size,
                       streamed);
}

// The same for a handful of elements from two sources to one output, where calls and vectors would cost
// more than they save. Words of 8 bytes, as far as they go: what is stored whole can be loaded whole at
// once. Returns false where only combine() gives the right bits.
template <class T, class Op>
COLLX_ALWAYS_INLINE bool combine_few(T* to, T const* a, T const* b, std::size_t count, Op const& op,
                                     bool complete, rank_t size) {
  constexpr std::size_t lanes = sizeof(T) < 8 ? 8 / sizeof(T) : 1;
  if constexpr (!detail::rounds_alike<T, Op>) return false;
  if constexpr (finishes<Op, accumulate_t<Op, T>>)
    if (complete) return false;
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes)
    detail::combine_lane<detail::vectors::any, lanes, false>(to + at, static_cast<T*>(nullptr), a + at,
                                                             b + at, op, size);
  for (; at < count; ++at)
    detail::combine_lane<detail::vectors::any, 1, false>(to + at, static_cast<T*>(nullptr), a + at, b + at,
                                                         op, size);
  return true;
}

}  // namespace collx::inline abi_1::device
