// SPDX-License-Identifier: Apache-2.0
// The memory that one rank of a group has registered with the others, as its kernels are told of it.
#pragma once

#include "collx/transport/cuda/registered_memory.cuh"
#include "collx/transport/cuda/windows.cuh"

namespace collx::inline abi_1::transport::cuda_parts {

// Not movable. `aside`: a stream that nothing else uses. `windows` and stream outlive it.
class registered_windows {
 public:
  // `is_alone`: all ranks are in this process, and need no handles.
  registered_windows(window_mappings& windows, cudaStream_t aside, rank_t rank, rank_t size, int device,
                     bool is_alone)
      : windows_(windows),
        aside_(aside),
        rank_(rank),
        device_(device),
        table_(cuda_ipc(), rank, size, is_alone) {}

  // What the others have to know of memory of this rank, which lies in `place`. Throws error (bad_argument,
  // system_failure).
  [[nodiscard]] registration_offer describe(void const* memory, std::size_t bytes, memory_place& place) {
    entry const here(device_);
    process_name const me = process_name::mine();
    if (bytes == 0) return {me, 0, 0, 0, 0, 0, {}};
    place = place_to_register(rank_, memory, bytes, device_);
    return table_.describe(me, place, reinterpret_cast<std::uintptr_t>(memory), bytes);
  }

  // Enters what all ranks have told, `place` being that of this one, and tells kernels; none runs. Returns
  // its number. Throws error (out_of_memory, system_failure).
  [[nodiscard]] int enter(std::span<registration_offer const> all, memory_place const& place) {
    entry const here(device_);
    int const at = table_.open(all, place);
    cudaError_t const code = windows_.tell_registered(table_.lists(), aside_);
    if (code != cudaSuccess) table_.close(at);
    require(code, "register_memory");
    return at;
  }

  // The reverse. Where CUDA refuses even to make the device current, or to tell kernels, lists keep what they
  // had, perhaps a mapping of memory that its owner may free. Nobody reads them: what refuses that is an
  // error of the context, which stays, and with which no kernel starts on this device any more.
  void drop(int at) noexcept {
    try {
      entry const here(device_);
      table_.close(at);
      (void)windows_.tell_registered(table_.lists(), aside_);
    } catch (error const&) {
    }
  }

  // Of memory that a call is given, all of its allocations: peers would go on reading what lay there before.
  // Throws error (bad_argument).
  void refuse_stale(char const* collective, void const* memory, std::size_t bytes) {
    if (table_.is_empty() || memory == nullptr) return;
    bool is_stale = false;
    auto const address = reinterpret_cast<std::uintptr_t>(memory);
    auto const look = [&](memory_place const& place) noexcept {
      is_stale = is_stale || table_.is_stale(place.bytes == 0 ? address : place.base, place);
    };
    (void)kinds_of_this_process().find_each(memory, bytes, look);  // what is wrong with it is told elsewhere
    if (!is_stale) return;
    throw_error(
        status::bad_argument,
        "%s: memory at %p was registered (register_memory) and freed since; destroy its registration, "
        "on all ranks, before it is freed",
        collective, memory);
  }

 private:
  window_mappings& windows_;
  cudaStream_t aside_;
  rank_t rank_;
  int device_;
  registered_memory<cuda_ipc> table_;
};

}  // namespace collx::inline abi_1::transport::cuda_parts
