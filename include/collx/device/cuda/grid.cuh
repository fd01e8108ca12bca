// SPDX-License-Identifier: Apache-2.0
// How many blocks a kernel is launched with, and how CUDA's errors become ours.
#pragma once

#include <atomic>
#include <cstddef>

#include <cuda_runtime.h>

#include "collx/core/status.hpp"
#include "collx/device/share.hpp"

namespace collx::inline abi_1::device {

// `error` is what CUDA said, cudaSuccess where the refusal is ours.
struct launch_result {
  status code = status::ok;
  cudaError_t error = cudaSuccess;
};

namespace detail {

[[nodiscard]] inline launch_result launch_outcome(cudaError_t error) noexcept {
  switch (error) {
    case cudaSuccess: return {};
    case cudaErrorMemoryAllocation:
    case cudaErrorLaunchOutOfResources: return {status::out_of_memory, error};
    case cudaErrorInvalidValue:
    case cudaErrorInvalidResourceHandle: return {status::bad_argument, error};
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoKernelImageForDevice: return {status::not_supported, error};
    default: return {status::system_failure, error};
  }
}

// How many blocks of one kernel the current device runs at once: asked once per device, then remembered.
class resident_blocks {
 public:
  // Blocks of `threads` threads, without dynamic shared memory.
  [[nodiscard]] cudaError_t find(void const* kernel, int threads, int& blocks) noexcept {
    int device = 0;
    if (cudaError_t const error = cudaGetDevice(&device); error != cudaSuccess) return error;
    bool const remembers = device < devices_max;
    // Relaxed: the number is all there is, and whoever asks the device meanwhile gets the same one.
    blocks = remembers ? found_[device].load(std::memory_order_relaxed) : 0;
    if (blocks != 0) return cudaSuccess;
    int processors = 0, per_processor = 0;
    cudaError_t error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, threads, 0);
    if (error != cudaSuccess) return error;
    blocks = processors * (per_processor > 0 ? per_processor : 1);
    if (remembers) found_[device].store(blocks, std::memory_order_relaxed);
    return cudaSuccess;
  }

 private:
  static constexpr int devices_max = 64;
  std::atomic<int> found_[devices_max]{};
};

}  // namespace detail

}  // namespace collx::inline abi_1::device
