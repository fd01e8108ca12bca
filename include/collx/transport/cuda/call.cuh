// SPDX-License-Identifier: Apache-2.0
// CUDA's error codes as this library's errors.
#pragma once

#include <cuda_runtime_api.h>

#include "collx/core/error.hpp"

namespace collx::inline abi_1::transport::cuda_parts {

// What is told here the program need not meet again in its own cudaGetLastError().
[[noreturn]] COLLX_COLD inline void throw_cuda(cudaError_t code, char const* what, char const* advice) {
  (void)cudaGetLastError();
  throw_error(code == cudaErrorMemoryAllocation ? status::out_of_memory : status::system_failure,
              "%s: CUDA says %s (%s); %s", what, cudaGetErrorName(code), cudaGetErrorString(code), advice);
}

inline void require(
    cudaError_t code, char const* what,
    char const* advice = "if an earlier kernel failed, CUDA reports it here: look there first") {
  if (COLLX_UNLIKELY(code != cudaSuccess)) throw_cuda(code, what, advice);
}

}  // namespace collx::inline abi_1::transport::cuda_parts
