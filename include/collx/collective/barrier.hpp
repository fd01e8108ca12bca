// SPDX-License-Identifier: Apache-2.0
// barrier: nobody returns before everybody has called.
//
//   barrier(comm)
//
// Any algorithm that offers an all_reduce serves, run on nothing; so do those that offer a barrier.
// Algorithm argument and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

namespace detail {

[[nodiscard]] inline auto bind_barrier(problem) noexcept {
  return invocation<contract::barrier, std::byte, unreduced>{};
}

}  // namespace detail

COLLX_DETAIL_FORMS(barrier)

}  // namespace collx::inline abi_1
