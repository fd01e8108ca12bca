// SPDX-License-Identifier: Apache-2.0
// scatter: every rank gets its block of the root's vector.
//
//   out[i] = in_root[rank * count + i]     for i < count
//
//   scatter(comm, in, out, root)     in: size * count elements on the root; elsewhere it is not looked
//                                    at and may be empty. out: count. root defaults to 0.
//
// In place is out == in + root * count, on the root.
// Algorithm argument, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, buffer_like Out>
[[nodiscard]] auto bind_scatter(problem p, In& in, Out& out, rank_argument root = 0) noexcept {
  auto args = bind_buffers<contract::scatter>(in, out, unreduced{});
  args.count = out.size();
  args.refuse_if_absurd(args.count, static_cast<std::size_t>(p.size));
  args.require_root(p, root);
  if (p.rank == root.value) {
    args.require_count("the root's input must have as many elements as all outputs together", in.size(),
                       static_cast<std::size_t>(p.size) * out.size());
    args.refuse_overlap(in.size(), out.size(),
                        negative(static_cast<std::size_t>(p.rank) * out.size()));
  } else {
    args.input = nullptr;
  }
  return args;
}

}  // namespace detail

COLLX_DETAIL_FORMS(scatter)

}  // namespace collx::inline abi_1
