// SPDX-License-Identifier: Apache-2.0
// Copies and reductions as kernels of their own: each block is a team that takes a piece of the elements.
#pragma once

#include <cuda_runtime.h>

#include "collx/core/status.hpp"
#include "collx/device/combine.hpp"
#include "collx/device/cuda/block_team.cuh"

namespace collx::inline abi_1::device {

// Sources and destinations of one launch together: their pointers are arguments of the kernel.
inline constexpr int kernel_pointers_max = 64;

// Threads of a block.
inline constexpr int kernel_threads = 512;

// `error` is what CUDA said, cudaSuccess where the refusal is ours.
struct launch_result {
  status code = status::ok;
  cudaError_t error = cudaSuccess;
};

// combine() (combine.hpp) of device memory, in stream order. The grid is sized for the current device.
template <class T, class Op>
[[nodiscard]] launch_result launch_combine(T* const* destinations, int destination_count,
                                           T const* const* sources, int source_count, std::size_t count,
                                           Op const& op, bool finish, rank_t size, cudaStream_t stream,
                                           int prepared = -1) noexcept;

// copy() likewise.
template <class T>
[[nodiscard]] launch_result launch_copy(T* const* destinations, int destination_count, T const* source,
                                        std::size_t count, cudaStream_t stream) noexcept;

}  // namespace collx::inline abi_1::device
