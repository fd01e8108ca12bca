// SPDX-License-Identifier: Apache-2.0
// The threads of one CUDA block as a team.
#pragma once

#include <cuda_runtime.h>

#include "collx/device/team.hpp"

namespace collx::inline abi_1::device {

// For blocks of one dimension. The members claim the host too, or nothing that is written for both could call
// them; there they are a thread on its own.
struct block_team {
  [[nodiscard]] COLLX_HD int rank() const noexcept {
#if defined(__CUDA_ARCH__)
    return static_cast<int>(threadIdx.x);
#else
    return 0;
#endif
  }
  [[nodiscard]] COLLX_HD int size() const noexcept {
#if defined(__CUDA_ARCH__)
    return static_cast<int>(blockDim.x);
#else
    return 1;
#endif
  }
  COLLX_HD void sync() noexcept {
#if defined(__CUDA_ARCH__)
    __syncthreads();
#endif
  }
};

static_assert(team<block_team>);

}  // namespace collx::inline abi_1::device
