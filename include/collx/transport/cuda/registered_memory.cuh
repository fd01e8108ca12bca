// SPDX-License-Identifier: Apache-2.0
// CUDA's part of memory that ranks register together.
#pragma once

#include "collx/transport/cuda/driver.cuh"
#include "collx/transport/cuda/memory.cuh"
#include "collx/transport/cuda/registered_memory.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

static_assert(sizeof(ipc_handle) == sizeof(cudaIpcMemHandle_t));

class cuda_ipc {
 public:
  [[nodiscard]] int export_handle(std::uintptr_t base, ipc_handle& made) const noexcept {
    cudaIpcMemHandle_t handle;
    cudaError_t const code = cudaIpcGetMemHandle(&handle, reinterpret_cast<void*>(base));
    if (code == cudaSuccess) std::memcpy(&made, &handle, sizeof made);
    return told(code);
  }
  [[nodiscard]] int open_handle(ipc_handle const& from, std::uintptr_t& address) const noexcept {
    cudaIpcMemHandle_t handle;
    std::memcpy(&handle, &from, sizeof handle);
    void* opened = nullptr;
    cudaError_t const code = cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess);
    address = reinterpret_cast<std::uintptr_t>(opened);
    return told(code);
  }
  [[nodiscard]] int close_handle(std::uintptr_t address) const noexcept {
    return told(cudaIpcCloseMemHandle(reinterpret_cast<void*>(address)));
  }

 private:
  // Whoever asked says what went wrong: the program's own cudaGetLastError() need not.
  [[nodiscard]] static int told(cudaError_t code) noexcept {
    if (code != cudaSuccess) (void)cudaGetLastError();
    return static_cast<int>(code);
  }
};
static_assert(ipc_driver<cuda_ipc>);

// Where memory of this process lies that is to be registered. Throws error (bad_argument) for what cannot be
// exported, or is no memory of one allocation.
[[nodiscard]] inline memory_place place_to_register(rank_t rank, void const* memory, std::size_t bytes,
                                                    int device) {
  auto& kinds = kinds_of_this_process();
  memory_answer const found = kinds.find(memory, bytes);
  char const* why = nullptr;
  if (found.code == status::ok) why = not_exported(found.place, device, kinds.driver().is_plain(memory));
  else if (found.code == status::bad_argument) why = "ends outside of the memory it was allocated in";
  else why = "is nothing that the driver can describe";
  if (why == nullptr) return found.place;
  throw_error(status::bad_argument,
              "register_memory, rank %d: the memory (%zu bytes at %p) %s; pass memory of cudaMalloc, or use "
              "allocate() of the group",
              rank, bytes, memory, why);
}

}  // namespace collx::inline abi_1::transport::cuda_parts
