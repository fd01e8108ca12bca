// SPDX-License-Identifier: Apache-2.0
// scan: the combination of the vectors of all ranks up to the own one, as MPI_Scan.
//
//   out[i] = in_0[i] op in_1[i] op ... op in_rank[i]
//
//   scan(comm, in, out, op)     scan(comm, inout, op)     op defaults to sum
//
// in, out: the same count on every rank. Contributions are combined in rank order by every algorithm, so
// op need not commute. Operators that end with a scaling (avg) are refused: whose number of ranks?
// Algorithm argument, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, buffer_like Out, class Op = sum_t>
[[nodiscard]] auto bind_scan(problem, In& in, Out& out, Op const& op = {}) noexcept {
  return bind_prefix<contract::scan>(in, out, op);
}

template <buffer_like InOut, class Op = sum_t>
  requires(!buffer_like<Op>)
[[nodiscard]] auto bind_scan(problem, InOut& inout, Op const& op = {}) noexcept {
  return bind_prefix<contract::scan>(inout, inout, op);
}

}  // namespace detail

COLLX_DETAIL_FORMS(scan)

}  // namespace collx::inline abi_1
