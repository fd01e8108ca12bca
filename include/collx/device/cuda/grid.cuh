// SPDX-License-Identifier: Apache-2.0
// Over how many multiprocessors a launch spreads, and how CUDA's errors become ours.
#pragma once

#include <atomic>

#include <cuda_runtime.h>

#include "collx/core/status.hpp"

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

// How many multiprocessors the current device has: asked once per device, then remembered.
[[nodiscard]] inline cudaError_t find_multiprocessors(int& number) noexcept {
  constexpr int devices_max = 64;
  static std::atomic<int> found[devices_max]{};
  int device = 0;
  if (cudaError_t const error = cudaGetDevice(&device); error != cudaSuccess) return error;
  bool const remembers = device < devices_max;
  // Relaxed: the number is all there is, and whoever asks the device meanwhile gets the same one.
  number = remembers ? found[device].load(std::memory_order_relaxed) : 0;
  if (number != 0) return cudaSuccess;
  cudaError_t const error = cudaDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess && remembers) found[device].store(number, std::memory_order_relaxed);
  return error;
}

}  // namespace detail

}  // namespace collx::inline abi_1::device
