// SPDX-License-Identifier: Apache-2.0
// The memory of a rank's window: of cudaMalloc, which other processes map by a handle of CUDA IPC, or of the
// driver's virtual memory, which they map by a descriptor.
#pragma once

#include "collx/transport/cuda/memory.cuh"
#include "collx/transport/cuda/virtual_memory.cuh"
#include "collx/transport/windows/handles.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

class window_memory {
 public:
  window_memory() = default;
  // At least `bytes` of the current device, which is `device`; zeroed. `is_alone`: all ranks are in this
  // process. Throws error (not_supported, out_of_memory, system_failure).
  window_memory(rank_t rank, int device, std::size_t bytes, window_handles wanted, bool is_alone)
      : bytes_(bytes) {
    // The driver's own functions do not, and answer nothing before.
    require(cudaFree(nullptr), "making the GPU ready");
    bool has_ipc = false;
    if (wanted != window_handles::descriptors) {
      plain_ = device_block(bytes);
      // Not every virtual GPU has handles; ranks of one process do without.
      has_ipc = cudaIpcGetMemHandle(&handle_, plain_.data()) == cudaSuccess;
      if (!has_ipc) (void)cudaGetLastError();
    }
    kind_ = windows::chosen_handles(wanted, is_alone, has_ipc, cuda_virtual_memory::can_export(device));
    if (kind_ == windows::handle_kind::descriptor) export_memory(rank, device);
    else if (wanted == window_handles::descriptors)
      throw_error(status::not_supported,
                  "gpu_communicator, rank %d: device %d cannot export its memory as descriptors; unset "
                  "COLLX_CUDA_HANDLES",
                  rank, device);
  }

  [[nodiscard]] std::byte* data() const noexcept {
    return shared_.here().data() == nullptr ? plain_.data() : shared_.here().data();
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] windows::handle_kind kind() const noexcept { return kind_; }
  [[nodiscard]] cudaIpcMemHandle_t const& handle() const noexcept { return handle_; }
  // -1: none.
  [[nodiscard]] int descriptor() const noexcept { return shared_.descriptor(); }
  void close_descriptor() noexcept { shared_.close_descriptor(); }

  // What lies in virtual memory stays where it is, for good; see mapped_memory::leave().
  void leave() noexcept { shared_.here().leave(); }
  // To free memory of cudaMalloc that another process may have open is undefined, and a kernel that looks at
  // it then ends all work of its process on the GPU: it stays until this one ends.
  void leave_opened() noexcept { plain_.leave(); }

  // Another device of this process reaches it from here on. Memory of cudaMalloc is reached by devices that
  // have access to this one, which whoever reaches sees to.
  void grant(rank_t rank, int device) {
    if (kind_ == windows::handle_kind::descriptor)
      require_window(shared_.here().grant(&device, 1), rank, rank);
  }

 private:
  void export_memory(rank_t rank, int device) {
    plain_ = {};
    require_window(
        shareable_memory<cuda_virtual_memory>::make(cuda_virtual_memory(), bytes_, device, shared_), rank,
        rank);
    bytes_ = shared_.here().bytes();
    clear(data(), bytes_);
  }

  device_block plain_;
  shareable_memory<cuda_virtual_memory> shared_;
  std::size_t bytes_ = 0;
  windows::handle_kind kind_ = windows::handle_kind::none;
  cudaIpcMemHandle_t handle_{};
};

}  // namespace collx::inline abi_1::transport::cuda_parts
