// SPDX-License-Identifier: Apache-2.0
// Events made beforehand: to make one may allocate, and so wait for the device, while a kernel of another
// rank of this process waits for this one.
#pragma once

#include <utility>

#include "collx/core/array.hpp"
#include "collx/transport/cuda/call.cuh"

namespace collx::inline abi_1::transport::cuda_parts {

// Of the device that is current when it is made. Used by one thread at a time.
class event_pool {
 public:
  explicit event_pool(std::size_t count) : event_pool(array<cudaEvent_t>(count)) {
    for (; idle_count_ < count; ++idle_count_)
      require(cudaEventCreateWithFlags(&idle_[idle_count_], cudaEventDisableTiming), "an event");
  }
  event_pool(event_pool const&) = delete;
  ~event_pool() {
    for (std::size_t i = 0; i < idle_count_; ++i) (void)cudaEventDestroy(idle_[i]);
  }

  // Throw error (out_of_memory) if all are in use.
  void require_one() const {
    if (idle_count_ == 0)
      throw error(status::out_of_memory, "gpu_communicator: 64 requests have not been waited for");
  }
  [[nodiscard]] cudaEvent_t take() {
    require_one();
    return idle_[--idle_count_];
  }
  void give_back(cudaEvent_t event) noexcept { idle_[idle_count_++] = event; }

 private:
  // Made whole first, so that the destructor gives back what there is when the rest cannot be made.
  explicit event_pool(array<cudaEvent_t> none) : idle_(std::move(none)) {}

  array<cudaEvent_t> idle_;
  std::size_t idle_count_ = 0;
};

}  // namespace collx::inline abi_1::transport::cuda_parts
