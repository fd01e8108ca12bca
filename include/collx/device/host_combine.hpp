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
template <class On, std::size_t N, bool Finish, class T, class Op>
COLLX_VECTOR_INLINE void combine_lane(T* first, T* second, T const* a, T const* b, Op const& op,
                                      rank_t size) {
  using wide = accumulate_t<Op, T>;
  wide x[N], y[N];
  T result[N];
  widen<On, N>(x, a);
  widen<On, N>(y, b);
  auto const combine_at = [&](std::size_t i) {
    x[i] = static_cast<wide>(op(x[i], y[i]));
    if constexpr (Finish) x[i] = static_cast<wide>(op.finish(x[i], size));
  };
  if constexpr (N * sizeof(T) <= 8) {  // no vector: straight code, for calls of a few bytes
    for (std::size_t i = 0; i < N; ++i) combine_at(i);
  } else {
    COLLX_LOOP_TO_VECTOR
    for (std::size_t i = 0; i < N; ++i) combine_at(i);
  }
  narrow<On, N>(result, x);
  copy_vectors<On, sizeof result>(first, result);
  if (second != nullptr) copy_vectors<On, sizeof result>(second, result);
}

// One loop for one output and for two: a branch that is always predicted costs nothing beside a cache
// line of elements, and a loop for each would cost every user's compiler as much again.
template <bool Finish>
struct combined_lanes {
  template <class On, class T, class Op>
  COLLX_VECTOR_INLINE static void run(T* first, T* second, T const* a, T const* b, std::size_t count,
                                      Op const& op, rank_t size) {
    constexpr std::size_t lanes = lane_elements<On, T, accumulate_t<Op, T>>;
    std::size_t const whole = count - count % lanes;
    COLLX_LOOP_OF_VECTORS
    for (std::size_t at = 0; at < whole; at += lanes)
      combine_lane<On, lanes, Finish>(first + at, second == nullptr ? nullptr : second + at, a + at, b + at,
                                      op, size);
    for (std::size_t at = whole; at < count; ++at)
      combine_lane<On, 1, Finish>(first + at, second == nullptr ? nullptr : second + at, a + at, b + at, op,
                                  size);
  }
};

// Whether code for other processors gives the same bits. An operator that multiplies and adds may be
// rounded once by the one and twice by the other; it is then left to the one, however few the elements. So is
// one that holds integers in floating point, where one that is too large becomes another integer.
template <class T, class Op>
inline constexpr bool rounds_alike =
    std::is_base_of_v<library_operator, Op> && (std::is_arithmetic_v<T> || is_small_float<T>) &&
    std::is_arithmetic_v<accumulate_t<Op, T>> &&
    !(std::is_integral_v<T> && std::is_floating_point_v<accumulate_t<Op, T>>);

#if defined(COLLX_AVX2)
// How far ahead of a streaming loop its sources are fetched, where the hardware stops at page ends, which
// come often in two sources and two outputs. Worth 5 % from 128 KiB on; twice as far is no better.
inline constexpr std::size_t prefetch_bytes = 8 * line_bytes;

// Whole lines, past the caches for the first `streamed` outputs, which begin on a cache line. Returns
// how many elements that were.
template <bool Finish>
struct combined_lines {
  template <class On, class T, class Op>
  COLLX_VECTOR_INLINE static std::size_t run(T* first, T* second, T const* a, T const* b, std::size_t count,
                                             Op const& op, rank_t size, std::int32_t streamed) {
    // A whole vector at least, of results.
    constexpr std::size_t of_results = On::vector_bytes / sizeof(T);
    constexpr std::size_t of_operands = lane_elements<On, T, accumulate_t<Op, T>>;
    constexpr std::size_t lanes = of_results > of_operands ? of_results : of_operands;
    constexpr std::size_t ahead = prefetch_bytes / sizeof(T);
    std::size_t const whole = count - count % (line_bytes / sizeof(T));
    alignas(On::vector_bytes < alignof(T) ? alignof(T) : On::vector_bytes) T x[lanes];
    bool const helped = cpu::wants_help_fetching;
    std::size_t at = 0;
    COLLX_LOOP_OF_VECTORS
    for (; at + lanes <= whole; at += lanes) {
      if (helped) {
        __builtin_prefetch(a + at + ahead);
        __builtin_prefetch(b + at + ahead);
      }
      combine_lane<On, lanes, Finish>(x, static_cast<T*>(nullptr), a + at, b + at, op, size);
      if constexpr (!converts_float16<On, T, accumulate_t<Op, T>>) COLLX_STORED(x);
      stream_vectors<On, sizeof x>(first + at, x);
      if (second == nullptr) continue;
      if (streamed == 2) stream_vectors<On, sizeof x>(second + at, x);
      else copy_vectors<On, sizeof x>(second + at, x);
    }
    fence_streams();
    return at;
  }
};

// Elements before the first that begins a cache line; -1 where none does. Lines hold whole elements.
template <class T>
[[nodiscard]] std::ptrdiff_t elements_to_line(T const* p) noexcept {
  std::uintptr_t const offset = reinterpret_cast<std::uintptr_t>(p) % line_bytes;
  if (offset % sizeof(T) != 0) return -1;
  return static_cast<std::ptrdiff_t>((line_bytes - offset) % line_bytes / sizeof(T));
}

// All of it by one kind: code for other processors may round an operator that multiplies and adds otherwise.
template <bool Finish, class T, class Op>
COLLX_NEVER_INLINE void combine_two_wide(T* first, T* second, T const* a, T const* b, std::size_t count,
                                         Op const& op, rank_t size, std::int32_t streamed) {
  std::size_t at = 0;
  if constexpr (line_bytes % sizeof(T) == 0) {
    std::ptrdiff_t const to_line = streamed == 0 ? -1 : elements_to_line(first);
    if (to_line >= 0 && static_cast<std::size_t>(to_line) <= count) {
      // The second can only be streamed with the first if both reach a line after as many elements.
      if (streamed == 2 && elements_to_line(second) != to_line) streamed = 1;
      at = static_cast<std::size_t>(to_line);
      run_on_vectors<combined_lanes<Finish>>(first, second, a, b, at, op, size);
      at += run_on_vectors<combined_lines<Finish>>(first + at, second == nullptr ? nullptr : second + at,
                                                   a + at, b + at, count - at, op, size, streamed);
    }
  }
  run_on_vectors<combined_lanes<Finish>>(first + at, second == nullptr ? nullptr : second + at, a + at,
                                         b + at, count - at, op, size);
}
#endif

// Two sources and one or two outputs: nearly every step of every algorithm.
template <bool Finish, class T, class Op>
COLLX_ALWAYS_INLINE void combine_two(T* first, T* second, T const* a, T const* b, std::size_t count,
                                     Op const& op, rank_t size, std::int32_t streamed) {
#if defined(COLLX_AVX2)
  // A barrier combines no elements, with an operator of its own.
  constexpr std::size_t count_min = rounds_alike<T, Op> ? 4 * line_bytes / sizeof(T) : 1;
  if (count >= count_min && has_wide_vectors())
    return combine_two_wide<Finish>(first, second, a, b, count, op, size, streamed);
#else
  (void)streamed;
#endif
  combined_lanes<Finish>::template run<generic_vectors>(first, second, a, b, count, op, size);
}

// Folds sources[0 .. source_count) in `block`, in the accumulate type, and puts the result into
// `result`: the block itself where both types are the same.
struct folded {
  template <class On, class T, class Op>
  COLLX_VECTOR_INLINE static void run(T* result, accumulate_t<Op, T>* block, T const* const* sources,
                                      std::int32_t source_count, std::size_t at, std::size_t count,
                                      Op const& op, bool complete, rank_t size) {
    using wide = accumulate_t<Op, T>;
    constexpr std::size_t lanes = lane_elements<On, T, wide>;
    std::size_t const whole = count - count % lanes;  // with lanes that it can count, clang unrolls loops
    widen_many<On>(block, sources[0] + at, count);
    for (std::int32_t k = 1; k < source_count; ++k) {
      T const* const source = sources[k] + at;
      std::size_t i = 0;
      COLLX_LOOP_OF_VECTORS
      for (; i < whole; i += lanes) {
        wide x[lanes], y[lanes];
        copy_vectors<On, sizeof x>(x, block + i);
        widen<On, lanes>(y, source + i);
        COLLX_LOOP_TO_VECTOR
        for (std::size_t j = 0; j < lanes; ++j) x[j] = static_cast<wide>(op(x[j], y[j]));
        copy_vectors<On, sizeof x>(block + i, x);
      }
      for (; i < count; ++i) block[i] = static_cast<wide>(op(block[i], static_cast<wide>(source[i])));
    }
    if constexpr (finishes<Op, wide>)
      for (std::size_t i = 0; complete && i < count; ++i)
        block[i] = static_cast<wide>(op.finish(block[i], size));
    if constexpr (!std::is_same_v<wide, T>) narrow_many<On>(result, block, count);
  }
};

template <class T, class Op>
void fold(T* result, accumulate_t<Op, T>* block, T const* const* sources, std::int32_t source_count,
          std::size_t at, std::size_t count, Op const& op, bool complete, rank_t size) {
#if defined(COLLX_AVX2)
  if (has_wide_vectors())
    return run_on_vectors<folded>(result, block, sources, source_count, at, count, op, complete, size);
#endif
  folded::run<generic_vectors>(result, block, sources, source_count, at, count, op, complete, size);
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
    detail::combine_lane<generic_vectors, lanes, false>(to + at, static_cast<T*>(nullptr), a + at, b + at, op,
                                                        size);
  for (; at < count; ++at)
    detail::combine_lane<generic_vectors, 1, false>(to + at, static_cast<T*>(nullptr), a + at, b + at, op,
                                                    size);
  return true;
}

}  // namespace collx::inline abi_1::device
