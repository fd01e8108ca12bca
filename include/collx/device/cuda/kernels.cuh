// SPDX-License-Identifier: Apache-2.0
// Copies and reductions as kernels of their own: each block is a team that takes a share of the elements.
// For memory that the current device can access; in stream order.
#pragma once

#include "collx/device/combine.hpp"
#include "collx/device/cuda/block_team.cuh"
#include "collx/device/cuda/grid.cuh"
#include "collx/device/cuda/kernel_list.cuh"

namespace collx::inline abi_1::device {

// Destinations and sources of one launch together: their pointers are arguments of the kernel.
inline constexpr int kernel_pointers_max = 64;

// Threads of a block, and how many blocks a multiprocessor must hold at least. With 8 loads of 16 bytes per
// thread, two blocks have 64 KiB in flight; at 4.8 TB/s and a latency of 0.8 us, an H200 needs 29 KiB for
// each of its 132 multiprocessors. The second number matters: without it ptxas (13.0) makes room for more
// blocks by adding before it has asked for all that it will add, and spills.
inline constexpr int kernel_threads = 256;
inline constexpr int kernel_blocks_min = 2;

// What combine_kernel is given: by value, so that nothing has to be copied to the device first.
template <class T, class Op>
struct combine_arguments {
  T* pointers[kernel_pointers_max];  // destinations, then sources, which are only read
  int destination_count, source_count;
  std::size_t count;
  Op op;
  bool finish;
  rank_t size;
  int prepared;
};

template <class T>
struct copy_arguments {
  T* destinations[kernel_pointers_max - 1];
  int destination_count;
  T const* source;
  std::size_t count;
};

namespace detail {

// Blocks are cut between lines of the second-level cache.
inline constexpr std::size_t cut_bytes_min = 128;
template <class T>
inline constexpr std::size_t cut_elements = cut_bytes_min / vector_bytes* pack_elements<T>;

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
  share const mine = share_of(given.count, detail::cut_elements<T>, blockIdx.x, gridDim.x);
  detail::combine_piece(threads, told, mine.begin, mine.count);
}

template <class T>
__global__ void __launch_bounds__(kernel_threads, kernel_blocks_min)
    copy_kernel(__grid_constant__ copy_arguments<T> const given) {
  block_team const threads;
  share const mine = share_of(given.count, detail::cut_elements<T>, blockIdx.x, gridDim.x);
  detail::copy_piece(threads, given.destinations, given.destination_count, given.source, mine.begin,
                     mine.count);
}

// Listed: they are put behind waits of streams, too (collective/gpu_reductions.cuh), and to load one then may
// wait for all streams.
template <class T, class Op>
inline listed_kernel const listed_combine{reinterpret_cast<void const*>(&combine_kernel<T, Op>)};
template <class T>
inline listed_kernel const listed_copy{reinterpret_cast<void const*>(&copy_kernel<T>)};

namespace detail {

// As many blocks as the device runs at once, or fewer: one vector for each thread is the least that a block
// is for. `Arguments` names the kernel, of which it is remembered how many blocks that is.
template <class Arguments>
[[nodiscard]] launch_result launch_over(std::size_t bytes, void const* function, Arguments const& given,
                                        cudaStream_t stream) noexcept {
  static resident_blocks resident;
  constexpr std::size_t block_bytes = kernel_threads * vector_bytes;
  int most = 0;
  if (cudaError_t const error = resident.find(function, kernel_threads, most); error != cudaSuccess)
    return launch_outcome(error);
  std::size_t const wanted = (bytes + block_bytes - 1) / block_bytes;
  std::size_t const blocks =
      wanted < static_cast<std::size_t>(most) ? wanted : static_cast<std::size_t>(most);
  void* arguments[] = {const_cast<Arguments*>(&given)};
  return launch_outcome(cudaLaunchKernel(function, dim3(static_cast<unsigned>(blocks)), dim3(kernel_threads),
                                         arguments, 0, stream));
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
  combine_arguments<T, Op> given{{}, destination_count, source_count, count, op, finish, size, prepared};
  for (int j = 0; j < destination_count; ++j) given.pointers[j] = destinations[j];
  for (int k = 0; k < source_count; ++k) given.pointers[destination_count + k] = const_cast<T*>(sources[k]);
  return detail::launch_over(count * sizeof(T), listed_combine<T, Op>.function(), given, stream);
}

// copy() (team_copy.hpp). Refused with bad_argument: kernel_pointers_max destinations or more.
template <class T>
[[nodiscard]] launch_result launch_copy(T* const* destinations, int destination_count, T const* source,
                                        std::size_t count, cudaStream_t stream) noexcept {
  if (destination_count < 0 || destination_count >= kernel_pointers_max)
    return {status::bad_argument, cudaSuccess};
  if (count == 0 || destination_count == 0) return {};
  copy_arguments<T> given{{}, destination_count, source, count};
  for (int j = 0; j < destination_count; ++j) given.destinations[j] = destinations[j];
  return detail::launch_over(count * sizeof(T), listed_copy<T>.function(), given, stream);
}

}  // namespace collx::inline abi_1::device
