// SPDX-License-Identifier: Apache-2.0
// barrier: nobody returns before everybody has called.
//
//   barrier(comm)
//
// Any algorithm that offers an all_reduce serves: a barrier is an all_reduce of nothing.
// Algorithm argument, operators, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

namespace detail {

[[nodiscard]] inline auto bind_barrier(problem) noexcept {
  return invocation<contract::barrier, std::byte, unreduced>{};
}

}  // namespace detail

template <class Algorithm = automatic, class Transport, class... Arguments>
void barrier(communicator<Transport>& comm, Arguments&&... arguments) {
  detail::run_or_throw<Algorithm>(comm.engine(), detail::bind_barrier(detail::where(comm), arguments...));
}

template <class Algorithm = automatic, class Transport, class... Arguments>
[[nodiscard]] status try_barrier(communicator<Transport>& comm, Arguments&&... arguments) noexcept {
  return detail::run<Algorithm>(comm.engine(), detail::bind_barrier(detail::where(comm), arguments...));
}

namespace start {

template <class Algorithm = automatic, class Transport, class... Arguments>
[[nodiscard]] auto barrier(communicator<Transport>& comm, Arguments&&... arguments) {
  return detail::begin<Algorithm>(comm.engine(), detail::bind_barrier(detail::where(comm), arguments...));
}

}  // namespace start
}  // namespace collx::inline abi_1
