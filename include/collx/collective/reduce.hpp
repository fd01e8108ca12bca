// SPDX-License-Identifier: Apache-2.0
// reduce: the root ends with the combination of all ranks' vectors.
//
//   reduce(comm, in, out, op, root)     reduce(comm, inout, op, root)     op: sum, root: 0
//
// Only the root's out is written; the others may pass anything, an empty range too. The in-place
// form leaves the vectors of the others as they are.
// Algorithm argument, operators, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, buffer_like Out, class Op = sum_t>
[[nodiscard]] auto bind_reduce(problem p, In& in, Out& out, Op const& op = {},
                               rank_argument root = 0) noexcept {
  auto args = bind_reduction<contract::reduce>(in, out, op);
  args.count = in.size();
  args.refuse_if_absurd(args.count);
  args.require_root(p, root);
  if (p.rank == root.value) {
    args.require_count("the root's output must have as many elements as the input", out.size(), in.size());
    args.refuse_overlap(in.size(), out.size(), 0);
  } else {
    args.output = nullptr;
  }
  return args;
}

template <buffer_like InOut, class Op = sum_t>
  requires(!buffer_like<Op>)
[[nodiscard]] auto bind_reduce(problem p, InOut& inout, Op const& op = {}, rank_argument root = 0) noexcept {
  return bind_reduce(p, inout, inout, op, root);
}

}  // namespace detail

COLLX_DETAIL_FORMS(reduce)

}  // namespace collx::inline abi_1
