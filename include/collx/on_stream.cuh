// SPDX-License-Identifier: Apache-2.0
// Where collectives on a GPU are put.
#pragma once

#include <cuda_runtime_api.h>

#include "collx/core/config.hpp"

namespace collx::inline abi_1 {

// The stream that a collective on a GPU is put into. 0 is CUDA's default stream.
struct on {
  cudaStream_t stream;
  explicit on(cudaStream_t s) : stream(s) {}
};

}  // namespace collx::inline abi_1
