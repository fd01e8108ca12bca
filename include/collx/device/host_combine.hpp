// SPDX-License-Identifier: Apache-2.0
// How a host processor copies and reduces: m sources combined, in order, into k destinations in
// one pass over memory. Called by the host executor with memory that peers may be reading.
#pragma once

#include <cstring>

#include "collx/device/stream.hpp"
#include "collx/op/reduction.hpp"

namespace collx::inline abi_1::device {

namespace detail {

// Elements that the vector loops take at a time. A trip count the compiler knows is what lets it
// use vector registers at every optimisation level, without run-time checks for overlap.
template <class T>
inline constexpr std::size_t lane_elements = sizeof(T) >= 64 ? 1 : 64 / sizeof(T);

// Elements that one block holds while many sources are folded into it: it stays in the first-level
// cache between sources.
template <class T>
inline constexpr std::size_t block_elements = sizeof(T) >= 4096 ? 1 : 4096 / sizeof(T);

template <class T, class Op>
inline constexpr bool has_finish = requires(Op const& op, T value, rank_t size) { op.finish(value, size); };

// One element through the accumulate type and back.
template <class T, class Op>
[[nodiscard]] COLLX_ALWAYS_INLINE T combined(T const& a, T const& b, Op const& op) {
  using wide = accumulate_t<Op, T>;
  return static_cast<T>(op(static_cast<wide>(a), static_cast<wide>(b)));
}

// N elements from two sources to one or two outputs (`second` may be null), in registers. Local arrays
// rather than references: a destination may be a source, and the compiler need not ask.
template <std::size_t N, bool Finish, class T, class Op>
COLLX_ALWAYS_INLINE void combine_lane(T* first, T* second, T const* a, T const* b, Op const& op,
                                      rank_t size) {
  T x[N], y[N];
  std::memcpy(x, a, sizeof x);
  std::memcpy(y, b, sizeof y);
  for (std::size_t i = 0; i < N; ++i) {
    x[i] = combined(x[i], y[i], op);
    if constexpr (Finish) x[i] = static_cast<T>(op.finish(x[i], size));
  }
  std::memcpy(first, x, sizeof x);
  if (second != nullptr) std::memcpy(second, x, sizeof x);
}

// One loop for one output and for two: a branch that is always predicted costs nothing beside a cache
// line of elements, and a loop for each would cost every user's compiler as much again.
template <bool Finish, class T, class Op>
COLLX_ALWAYS_INLINE void combine_lanes(T* first, T* second, T const* a, T const* b, std::size_t count,
                                       Op const& op, rank_t size) {
  constexpr std::size_t lanes = lane_elements<T>;
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes)
    combine_lane<lanes, Finish>(first + at, second == nullptr ? nullptr : second + at, a + at, b + at, op,
                                size);
  for (; at < count; ++at)
    combine_lane<1, Finish>(first + at, second == nullptr ? nullptr : second + at, a + at, b + at, op, size);
}

#if defined(COLLX_WIDE_VECTORS)
template <bool Finish, class T, class Op>
COLLX_WIDE_VECTORS void combine_lanes_wide(T* first, T* second, T const* a, T const* b, std::size_t count,
                                           Op const& op, rank_t size) {
  combine_lanes<Finish>(first, second, a, b, count, op, size);
}

// How far ahead of a streaming loop its sources are fetched: the hardware stops at page ends, which
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
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    __builtin_prefetch(a + at + prefetch_lines * lanes);
    __builtin_prefetch(b + at + prefetch_lines * lanes);
    combine_lane<lanes, Finish>(x, static_cast<T*>(nullptr), a + at, b + at, op, size);
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
  if (count >= 4 * lane_elements<T> && cpu::wide_vectors)
    return combine_two_wide<Finish>(first, second, a, b, count, op, size, streamed);
#else
  (void)streamed;
#endif
  combine_lanes<Finish>(first, second, a, b, count, op, size);
}

// Folds sources[0 .. source_count) into `block`, wide: partial results stay in the accumulate type.
template <class T, class Op>
COLLX_ALWAYS_INLINE void fold_lanes(accumulate_t<Op, T>* block, T const* const* sources,
                                    std::int32_t source_count, std::size_t at, std::size_t count,
                                    Op const& op) {
  using wide = accumulate_t<Op, T>;
  constexpr std::size_t lanes = lane_elements<wide>;
  if constexpr (std::is_same_v<wide, T>) std::memcpy(block, sources[0] + at, count * sizeof(T));
  else
    for (std::size_t i = 0; i < count; ++i) block[i] = static_cast<wide>(sources[0][at + i]);
  for (std::int32_t k = 1; k < source_count; ++k) {
    T const* const source = sources[k] + at;
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      wide x[lanes];
      T y[lanes];
      std::memcpy(x, block + i, sizeof x);
      std::memcpy(y, source + i, sizeof y);
      for (std::size_t j = 0; j < lanes; ++j) x[j] = static_cast<wide>(op(x[j], static_cast<wide>(y[j])));
      std::memcpy(block + i, x, sizeof x);
    }
    for (; i < count; ++i) block[i] = static_cast<wide>(op(block[i], static_cast<wide>(source[i])));
  }
}

#if defined(COLLX_WIDE_VECTORS)
template <class T, class Op>
COLLX_WIDE_VECTORS void fold_wide(accumulate_t<Op, T>* block, T const* const* sources,
                                  std::int32_t source_count, std::size_t at, std::size_t count,
                                  Op const& op) {
  fold_lanes(block, sources, source_count, at, count, op);
}
#endif

template <class T, class Op>
void fold(accumulate_t<Op, T>* block, T const* const* sources, std::int32_t source_count, std::size_t at,
          std::size_t count, Op const& op) {
#if defined(COLLX_WIDE_VECTORS)
  if (cpu::wide_vectors) return fold_wide(block, sources, source_count, at, count, op);
#endif
  fold_lanes(block, sources, source_count, at, count, op);
}

// Any number of sources and destinations, block by block. Apart from combine(): two sources need none of
// this stack.
template <class T, class Op>
COLLX_NEVER_INLINE void combine_many(T* const* destinations, std::int32_t destination_count,
                                     T const* const* sources, std::int32_t source_count, std::size_t count,
                                     Op const& op, bool complete, rank_t size, std::int32_t streamed) {
  using wide = accumulate_t<Op, T>;
  constexpr std::size_t block_count = block_elements<T>;
  alignas(64) std::byte raw[block_count * sizeof(wide)];
  wide* const block = reinterpret_cast<wide*>(raw);
  for (std::size_t at = 0; at < count; at += block_count) {
    std::size_t const n = count - at < block_count ? count - at : block_count;
    fold(block, sources, source_count, at, n, op);
    if constexpr (has_finish<wide, Op>)
      for (std::size_t i = 0; complete && i < n; ++i) block[i] = static_cast<wide>(op.finish(block[i], size));
    for (std::int32_t j = 0; j < destination_count; ++j) {
      if constexpr (std::is_same_v<wide, T>)
        copy(reinterpret_cast<std::byte*>(destinations[j] + at), raw, n * sizeof(T), j < streamed);
      else
        for (std::size_t i = 0; i < n; ++i) destinations[j][at + i] = static_cast<T>(block[i]);
    }
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
  using wide = accumulate_t<Op, T>;
  // With a wider accumulate type finish() works on the wide value: the general path.
  constexpr bool finishes = detail::has_finish<wide, Op>, narrow = std::is_same_v<wide, T>;
  bool const two = source_count == 2 && (destination_count == 1 || destination_count == 2);
  if (two && !(finishes && complete && !narrow)) {
    T* const first = destinations[0];
    T* const second = destination_count == 2 ? destinations[1] : nullptr;
    if constexpr (finishes && narrow) {
      if (complete)
        return detail::combine_two<true>(first, second, sources[0], sources[1], count, op, size, streamed);
    }
    return detail::combine_two<false>(first, second, sources[0], sources[1], count, op, size, streamed);
  }
  detail::combine_many(destinations, destination_count, sources, source_count, count, op, complete, size,
                       streamed);
}

}  // namespace collx::inline abi_1::device
