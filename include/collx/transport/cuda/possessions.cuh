// SPDX-License-Identifier: Apache-2.0
// What a rank of a group has of CUDA's besides memory of the GPU. Made beforehand, of the device that is
// current then.
#pragma once

#include "collx/transport/cuda/captures.cuh"
#include "collx/transport/cuda/events.cuh"
#include "collx/transport/cuda/memory.cuh"
#include "collx/transport/windows/view.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

struct possessions {
  static constexpr std::size_t requests_max = 64;

  own_event last_call;
  own_event captured_calls[captures_max];
  // abort() uses it: it must get past whatever streams of the user wait for.
  own_stream aside = own_stream::with_own_queue();
  // Graphs are made in this one, whose priority their kernels have; the other must not be captured.
  own_stream recorded;
  pinned<std::uint32_t> stop;
  pinned<windows::report> report;
  event_pool events{requests_max};
};

}  // namespace collx::inline abi_1::transport::cuda_parts
