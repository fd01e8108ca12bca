// SPDX-License-Identifier: Apache-2.0
// exclusive_scan: the combination of the vectors of all ranks before the own one, as MPI_Exscan.
//
//   out[i] = in_0[i] op in_1[i] op ... op in_{rank-1}[i];     on rank 0, out stays as it was
//
//   exclusive_scan(comm, in, out, op)     exclusive_scan(comm, inout, op)     op defaults to sum
//
// Otherwise as scan (scan.hpp).
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, buffer_like Out, class Op = sum_t>
[[nodiscard]] auto bind_exclusive_scan(problem, In& in, Out& out, Op const& op = {}) noexcept {
  return bind_prefix<contract::exclusive_scan>(in, out, op);
}

template <buffer_like InOut, class Op = sum_t>
  requires(!buffer_like<Op>)
[[nodiscard]] auto bind_exclusive_scan(problem, InOut& inout, Op const& op = {}) noexcept {
  return bind_prefix<contract::exclusive_scan>(inout, inout, op);
}

}  // namespace detail

COLLX_DETAIL_FORMS(exclusive_scan)

}  // namespace collx::inline abi_1
