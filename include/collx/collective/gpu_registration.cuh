// SPDX-License-Identifier: Apache-2.0
// Memory of cudaMalloc that kernels of other processes read and store to in place, instead of by way of
// staging memory, from when all ranks have registered it:
//
//   collx::memory_registration const mine = gpu.register_memory(std::span(gradient, count));
//
// In one process all memory of cudaMalloc is reached already; to register it does no harm.
#pragma once

#include <exception>
#include <utility>

#include "collx/gpu_communicator.cuh"

namespace collx::inline abi_1 {

// What register_memory() of a gpu_communicator returns. Made and destroyed by all ranks together, in the same
// order, and destroyed before the communicator, and before the memory is freed: its end waits until no call
// of any rank reads the memory. Neither while a graph with calls of the group runs: its kernels look at what
// is registered. Movable, so that it can be kept where the memory is.
class memory_registration {
 public:
  // Throws error, on all ranks if on one: bad_argument (memory of the host, managed memory, that of a pool or
  // a mapping, of several allocations; or where something lies that was registered and freed), out_of_memory
  // (16 registrations at a time), system_failure. No bytes: this rank has none to register.
  memory_registration(gpu_communicator& gpu, void const* memory, std::size_t bytes) : gpu_(&gpu) {
    using transport::cuda_parts::registration_offer;
    array<registration_offer> all(static_cast<std::size_t>(gpu.size())), mine(1);
    transport::cuda_parts::memory_place place;
    gpu.together("register_memory", [&] { mine[0] = gpu.registered().describe(memory, bytes, place); });
    gpu.gather(std::as_bytes(std::span(mine.data(), 1)),
               std::as_writable_bytes(std::span(all.data(), all.size())));
    try {
      gpu.together("register_memory", [&] {
        gpu.end_calls();  // they look at the lists
        at_ = gpu.registered().enter(std::span(all.data(), all.size()), place);
      });
    } catch (...) {
      if (at_ >= 0) gpu.registered().drop(at_);
      (void)gpu.try_meet();  // as at the end: who hears of it may free the memory
      throw;
    }
  }
  memory_registration(memory_registration&& other) noexcept
      : gpu_(other.gpu_), at_(std::exchange(other.at_, -1)) {}
  memory_registration& operator=(memory_registration&& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(at_, other.at_);
    return *this;
  }
  ~memory_registration() {
    if (at_ < 0) return;
    if (std::uncaught_exceptions() > exceptions_) gpu_->abort();  // peers' kernels may wait for this rank
    gpu_->end_calls();
    (void)gpu_->try_meet();  // nobody's kernels look at it any more
    gpu_->registered().drop(at_);
    (void)gpu_->try_meet();  // nobody has it mapped: its owner may free it
  }

 private:
  gpu_communicator* gpu_;
  int at_ = -1;  // among the group's; -1: none
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace collx::inline abi_1
