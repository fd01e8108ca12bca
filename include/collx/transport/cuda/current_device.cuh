// SPDX-License-Identifier: Apache-2.0
// What is asked of CUDA concerns the calling thread's device: it is made that of a group, for as long as one
// asks on the group's behalf, and then again what it was.
#pragma once

#include <cudaTypedefs.h>

#include "collx/transport/cuda/call.cuh"
#include "collx/transport/cuda/entry_point.cuh"

namespace collx::inline abi_1::transport::cuda_parts {

// Of the driver: a device's primary context, which is the runtime's, and a thread's stack of contexts.
struct primary_contexts : entry_points<primary_contexts> {
  PFN_cuDevicePrimaryCtxRetain_v7000 take = nullptr;
  PFN_cuDevicePrimaryCtxRelease_v11000 give_back = nullptr;
  PFN_cuCtxPushCurrent_v4000 enter = nullptr;
  PFN_cuCtxPopCurrent_v4000 leave = nullptr;

  void find_all() noexcept {
    get("cuDevicePrimaryCtxRetain", 7000, take);
    get("cuDevicePrimaryCtxRelease", 11000, give_back);
    get("cuCtxPushCurrent", 4000, enter);
    get("cuCtxPopCurrent", 4000, leave);
  }
};

// Not by cudaSetDevice() and back: since CUDA 12 that makes a context at once, and a thread that has never
// chosen a device seems to have chosen the first one. Each process of a job would then hold memory of GPU 0.
class entered_device {
 public:
  entered_device() = default;
  entered_device(entered_device const&) = delete;
  ~entered_device() {
    if (before_ == device_) return;
    if (!by_context_) {
      (void)cudaSetDevice(before_);
      return;
    }
    CUcontext left = nullptr;
    (void)primary_contexts::loaded().leave(&left);
    (void)primary_contexts::loaded().give_back(device_);
  }

  // Once. Where it fails the thread's device is what it was.
  [[nodiscard]] cudaError_t enter(int device) noexcept {
    int current = 0;
    if (cudaError_t const code = cudaGetDevice(&current); code != cudaSuccess) return code;
    if (current == device) return cudaSuccess;
    primary_contexts const& driver = primary_contexts::loaded();
    by_context_ = driver.are_all_there;
    cudaError_t const code = by_context_ ? enter_context(driver, device) : cudaSetDevice(device);
    if (code == cudaSuccess) before_ = current, device_ = device;
    return code;
  }

 private:
  // One number for both, of the driver and the runtime.
  [[nodiscard]] static cudaError_t enter_context(primary_contexts const& driver, int device) noexcept {
    CUcontext context = nullptr;
    CUresult code = driver.take(&context, device);
    if (code != CUDA_SUCCESS) return static_cast<cudaError_t>(code);
    code = driver.enter(context);
    if (code != CUDA_SUCCESS) (void)driver.give_back(device);
    return static_cast<cudaError_t>(code);
  }

  int before_ = 0, device_ = 0;
  bool by_context_ = false;
};

class current_device {
 public:
  explicit current_device(int device) { require(here_.enter(device), "making a device current"); }

 private:
  entered_device here_;
};

// The same where nothing may be thrown: what is asked then fails.
class quietly_current_device {
 public:
  explicit quietly_current_device(int device) noexcept { (void)here_.enter(device); }

 private:
  entered_device here_;
};

}  // namespace collx::inline abi_1::transport::cuda_parts
