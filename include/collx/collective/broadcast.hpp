// SPDX-License-Identifier: Apache-2.0
// broadcast: every rank ends with the root's vector.
//
//   broadcast(comm, inout, root)     broadcast(comm, in, out, root)     root defaults to 0
//
// out has the same count on every rank. Only the root's in is looked at; the others may pass any range, an
// empty one too. Algorithm argument, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, buffer_like Out>
[[nodiscard]] auto bind_broadcast(problem p, In& in, Out& out, rank_argument root = 0) noexcept {
  auto args = bind_buffers<contract::broadcast>(in, out, unreduced{});
  args.count = out.size();
  args.refuse_if_absurd(args.count);
  args.require_root(p, root);
  if (p.rank == root.value) {
    args.require_count("the root's input must have as many elements as the output", in.size(), out.size());
    args.refuse_overlap(in.size(), out.size(), 0);
  }
  return args;
}

template <buffer_like InOut>
[[nodiscard]] auto bind_broadcast(problem p, InOut& inout, rank_argument root = 0) noexcept {
  return bind_broadcast(p, inout, inout, root);
}

}  // namespace detail

COLLX_DETAIL_FORMS(broadcast)

}  // namespace collx::inline abi_1
