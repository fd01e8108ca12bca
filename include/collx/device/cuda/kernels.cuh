// SPDX-License-Identifier: Apache-2.0
// Copies and reductions as kernels of their own: each block is a team that takes a tile of the elements.
// For memory that the current device can access; in stream order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "collx/device/combine.hpp"
#include "collx/device/cuda/block_team.cuh"
#include "collx/device/cuda/grid.cuh"
#include "collx/device/cuda/kernel_list.cuh"
#include "collx/device/share.hpp"
#include "collx/device/team_copy.hpp"

namespace collx::inline abi_1::device {

// Destinations and sources of one launch together: their pointers are arguments of the kernel.
inline constexpr int kernel_pointers_max = 64;

// Threads of a block, and how many blocks a multiprocessor must hold at least. The second number matters:
// without it ptxas (13.0) makes room for more blocks by adding before it has asked for all that it will add,
// and spills.
inline constexpr int kernel_threads = 256;
inline constexpr int kernel_blocks_min = 2;

// Packs that a thread has in flight, or vectors that it copies; a tile of a block is one such batch of its
// threads. Measured on an H200 (driver 580.159.04, 2026-11-26; docs/device.md has the table):
// - A block for each tile, not as many blocks as the device runs at once with a contiguous share each. Blocks
//   begin in order, so the whole GPU is at a few neighbouring MiB of each vector at a time, which its memory
//   likes better than hundreds of places that lie apart. Copies: 0.97 of the driver's instead of 0.87.
// - Two, where registers would do for 4 packs and 8 vectors. Sums are as fast with both, and more blocks fit
//   on a multiprocessor: copies are faster, and so are tiles that are not whole, as short vectors have them.
inline constexpr std::size_t kernel_packs = 2;

// What combine_kernel is given: by value, so that nothing has to be copied to the device first.
template <class T, class Op>
struct combine_arguments {
  T* pointers[kernel_pointers_max];  // destinations, then sources, which are only read
  int destination_count, source_count;
  tiles cut;
  Op op;
  bool finish;
  rank_t size;
  int prepared;
};

template <class Word>
struct copy_arguments {
  Word* destinations[kernel_pointers_max - 1];
  int destination_count;
  Word const* source;
  tiles cut;
};

namespace detail {

// Tiles are cut between lines of the second-level cache, where elements allow it: of a vector that begins at
// one, whole packs fill whole lines.
inline constexpr std::size_t l2_line_bytes = 128;
template <class T>
inline constexpr std::size_t line_elements = (l2_line_bytes / vector_bytes) * pack_elements<T>;

// Of a tile `packs` packs of each thread, or as many elements that are never taken in packs. Where that
// leaves multiprocessors without a block, one vector for each thread is the least that a block is for.
template <class T>
[[nodiscard]] constexpr tile_sizes tile_sizes_of(std::size_t packs) {
  constexpr std::size_t lines_min =
      (kernel_threads * vector_bytes + line_elements<T> * sizeof(T) - 1) / (line_elements<T> * sizeof(T));
  static_assert(kernel_threads % line_elements<T> == 0, "tiles end between lines");
  std::size_t const whole = kernel_threads * packs * (has_vectors<T> ? pack_elements<T> : 1);
  std::size_t const least = lines_min * line_elements<T>;
  return {whole, least < whole ? least : whole};
}
template <class T, class Op>
inline constexpr tile_sizes combined_tiles = tile_sizes_of<T>([] {
  constexpr std::size_t elements = has_vectors<T> ? pack_elements<T> : 1;
  constexpr std::size_t possible = packs_in_flight<T, accumulate_t<Op, T>, elements>;
  return has_vectors<T> && possible > kernel_packs ? kernel_packs : possible;
}());
template <class Word>
inline constexpr tile_sizes copied_tiles = tile_sizes_of<Word>(kernel_packs);

}  // namespace detail

template <class T, class Op>
__global__ void __launch_bounds__(kernel_threads, kernel_blocks_min)
    combine_kernel(__grid_constant__ combine_arguments<T, Op> const given) {
  block_team const threads;
  detail::combination<T, Op> const told{given.pointers,
                                        given.pointers + given.destination_count,
                                        given.destination_count,
                                        given.source_count,
                                        given.op,
                                        given.finish,
                                        given.size,
                                        given.prepared};
  share const mine = given.cut.at(blockIdx.x);
  detail::combine_piece<kernel_packs>(threads, told, mine.begin, mine.count);
}

template <class Word>
__global__ void __launch_bounds__(kernel_threads, kernel_blocks_min)
    copy_kernel(__grid_constant__ copy_arguments<Word> const given) {
  block_team const threads;
  share const mine = given.cut.at(blockIdx.x);
  detail::copy_piece<kernel_packs>(threads, given.destinations, given.destination_count, given.source,
                                   mine.begin, mine.count);
}

// Listed: they are put behind waits of streams, too (collective/gpu_reductions.cuh), and to load one then may
// wait for all streams.
template <class T, class Op>
inline listed_kernel const listed_combine{reinterpret_cast<void const*>(&combine_kernel<T, Op>)};
template <class Word>
inline listed_kernel const listed_copy{reinterpret_cast<void const*>(&copy_kernel<Word>)};

namespace detail {

// Fewer blocks for each multiprocessor than this are not made of whole tiles.
inline constexpr std::size_t blocks_wanted = 2;
inline constexpr std::size_t blocks_max = 0x7FFF'FFFF;  // what a grid may have

// A block for each tile of `count` elements, of which the first is to be written at `first`.
template <class T, class Arguments>
[[nodiscard]] launch_result launch_over(T const* first, std::size_t count, tile_sizes sizes,
                                        void const* function, Arguments& given,
                                        cudaStream_t stream) noexcept {
  int multiprocessors = 0;
  if (cudaError_t const error = find_multiprocessors(multiprocessors); error != cudaSuccess)
    return launch_outcome(error);
  std::size_t const head =
      elements_to_cut(reinterpret_cast<std::uintptr_t>(first), sizeof(T), l2_line_bytes, line_elements<T>);
  given.cut =
      tiles_of(count, head, sizes, blocks_wanted * static_cast<std::size_t>(multiprocessors), blocks_max);
  void* arguments[] = {&given};
  return launch_outcome(cudaLaunchKernel(function, dim3(static_cast<unsigned>(given.cut.number())),
                                         dim3(kernel_threads), arguments, 0, stream));
}

}  // namespace detail

// combine() (combine.hpp). Refused with bad_argument: no source, or more than kernel_pointers_max sources and
// destinations.
template <class T, class Op>
[[nodiscard]] launch_result launch_combine(T* const* destinations, int destination_count,
                                           T const* const* sources, int source_count, std::size_t count,
                                           Op const& op, bool finish, rank_t size, cudaStream_t stream,
                                           int prepared = -1) noexcept {
  if (source_count < 1 || destination_count < 0 || source_count > kernel_pointers_max ||
      destination_count > kernel_pointers_max - source_count)
    return {status::bad_argument, cudaSuccess};
  if (count == 0 || destination_count == 0) return {};
  combine_arguments<T, Op> given{{}, destination_count, source_count, {}, op, finish, size, prepared};
  for (int j = 0; j < destination_count; ++j) given.pointers[j] = destinations[j];
  for (int k = 0; k < source_count; ++k) given.pointers[destination_count + k] = const_cast<T*>(sources[k]);
  return detail::launch_over(destinations[0], count, detail::combined_tiles<T, Op>,
                             listed_combine<T, Op>.function(), given, stream);
}

// copy() (team_copy.hpp). Refused with bad_argument: kernel_pointers_max destinations or more. Elements are
// copied as words of their alignment, so that a tile holds whole vectors, whatever an element's size.
template <class T>
[[nodiscard]] launch_result launch_copy(T* const* destinations, int destination_count, T const* source,
                                        std::size_t count, cudaStream_t stream) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  using word = detail::copied_word<(alignof(T) < 8 ? alignof(T) : 8)>;
  if (destination_count < 0 || destination_count >= kernel_pointers_max)
    return {status::bad_argument, cudaSuccess};
  if (count == 0 || destination_count == 0) return {};
  copy_arguments<word> given{{}, destination_count, reinterpret_cast<word const*>(source), {}};
  for (int j = 0; j < destination_count; ++j)
    given.destinations[j] = reinterpret_cast<word*>(destinations[j]);
  return detail::launch_over(given.destinations[0], count * (sizeof(T) / sizeof(word)),
                             detail::copied_tiles<word>, listed_copy<word>.function(), given, stream);
}

}  // namespace collx::inline abi_1::device
