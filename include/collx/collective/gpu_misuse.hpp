// SPDX-License-Identifier: Apache-2.0
// What calls on memory of a GPU refuse before anything is put into a stream, and in which words. Knows no
// CUDA: what is there is told by who asks (gpu_forms.cuh, or a test).
#pragma once

#include "collx/core/error.hpp"
#include "collx/transport/cuda/memory_kinds.hpp"

namespace collx::inline abi_1::detail {

// Refuses what a kernel would fail on, or worse. A known allocation costs one question to the driver, or none
// (transport/cuda/memory_kinds.hpp). `alignment`: of the elements; a GPU takes no others. `device`: the
// group's. Throws error (bad_argument, or what the driver failed with).
template <class Kinds>
void require_on_device(Kinds& kinds, char const* collective, char const* which, void const* memory,
                       std::size_t bytes, std::size_t alignment, int device) {
  using transport::cuda_parts::place_kind;
  char const* what = nullptr;
  auto const look = [&](transport::cuda_parts::memory_place const& place) noexcept {
    if (what != nullptr) return;
    if (place.kind == place_kind::host) what = "is not memory that CUDA knows: memory of the host, or freed";
    else if (place.kind == place_kind::pinned)
      what =
          "is memory of the host; pass memory of the GPU, or call the collective on the host's communicator";
    else if (place.kind == place_kind::device && place.device != device)
      what = "lies on another GPU than the group's";
  };
  auto const answer = kinds.find_each(memory, bytes, look);
  if (what == nullptr && answer.code == status::bad_argument)
    what = "ends outside of the memory it was allocated in; is the count right?";
  if (what == nullptr && reinterpret_cast<std::uintptr_t>(memory) % alignment != 0)
    what = "is not aligned as its elements are, without which a kernel cannot read it";
  if (what == nullptr && answer.code == status::ok) return;
  if (what != nullptr)
    throw_error(status::bad_argument, "%s: the %s (%zu bytes at %p) %s", collective, which, bytes, memory,
                what);
  char const* name = "";
  if constexpr (requires { kinds.driver().name_of(0); }) name = kinds.driver().name_of(answer.driver_error);
  throw_error(
      answer.code,
      "%s: CUDA cannot say what the %s (%p) is (driver error %d %s); if an earlier kernel failed, CUDA "
      "reports it here: look there first",
      collective, which, memory, answer.driver_error, name);
}

// What a call that is put into a stream meets with.
struct stream_state {
  int current;            // the calling thread's device
  int device;             // the stream's
  bool waits_for_others;  // of itself: it was made without cudaStreamNonBlocking
};

// `device`: the group's. `shares_device`: with another rank of this process. Throws error (bad_argument).
inline void require_stream(char const* collective, stream_state const& stream, int device,
                           bool shares_device) {
  if (shares_device && stream.waits_for_others)
    throw_error(
        status::bad_argument,
        "%s: ranks of one process on one GPU need streams made with cudaStreamNonBlocking: others wait for "
        "each other, and so would the ranks",
        collective);
  if (stream.current != device)
    throw_error(status::bad_argument,
                "%s: the current context is of device %d and the group's device is %d; call cudaSetDevice "
                "first",
                collective, stream.current, device);
  if (stream.device != device)
    throw_error(status::bad_argument,
                "%s: the stream is of device %d and the group's device is %d; pass a stream of that device",
                collective, stream.device, device);
}

}  // namespace collx::inline abi_1::detail
