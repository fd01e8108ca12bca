// SPDX-License-Identifier: Apache-2.0
// The library's kernels in this program: those that wait for others, and those that others wait for. CUDA
// loads a kernel when it is first launched, and may wait for the device to be idle then: with a kernel of
// another rank that waits for this one, for ever. The same happens when a kernel needs more local memory than
// any before it. So they are loaded, and the memory is set aside, before.
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::device {

// To be made with static storage duration: enters a kernel into the list before main() begins.
class listed_kernel {
 public:
  explicit listed_kernel(void const* function) noexcept : function_(function), next_(first()) {
    first() = this;
  }
  listed_kernel(listed_kernel const&) = delete;

  [[nodiscard]] void const* function() const noexcept { return function_; }

  // Loads all of them for the current device, and gives every thread of it as much stack as the deepest
  // needs.
  [[nodiscard]] COLLX_COLD static cudaError_t load_all() noexcept {
    std::size_t deepest = 0, now = 0;
    for (listed_kernel const* k = first(); k != nullptr; k = k->next_) {
      cudaFuncAttributes about{};
      if (cudaError_t const code = cudaFuncGetAttributes(&about, k->function_); code != cudaSuccess)
        return code;
      if (about.localSizeBytes > deepest) deepest = about.localSizeBytes;
    }
    if (cudaError_t const code = cudaDeviceGetLimit(&now, cudaLimitStackSize); code != cudaSuccess)
      return code;
    // Takes effect at once, unlike the driver's own enlargement at a launch, which waits for the device.
    return now >= deepest ? cudaSuccess : cudaDeviceSetLimit(cudaLimitStackSize, deepest);
  }

 private:
  // Not changed after the objects of static storage are made, by one thread.
  [[nodiscard]] static listed_kernel const*& first() noexcept {
    static listed_kernel const* head = nullptr;
    return head;
  }

  void const* function_;
  listed_kernel const* next_;
};

}  // namespace collx::inline abi_1::device
