// SPDX-License-Identifier: Apache-2.0
// gather: the root gets every rank's vector, in rank order.
//
//   out[r * count + i] = in_r[i]     for i < count, r < size, on the root
//
//   gather(comm, in, out, root)     in: count elements, out: size * count on the root; elsewhere it is
//                                   not looked at and may be empty. root defaults to 0.
//
// In place is in == out + root * count, on the root.
// Algorithm argument, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, buffer_like Out>
[[nodiscard]] auto bind_gather(problem p, In& in, Out& out, rank_argument root = 0) noexcept {
  auto args = bind_buffers<contract::gather>(in, out, unreduced{});
  args.count = in.size();
  args.refuse_if_absurd(args.count, static_cast<std::size_t>(p.size));
  args.require_root(p, root);
  if (p.rank == root.value) {
    args.require_count("the root's output must have as many elements as all inputs together", out.size(),
                       static_cast<std::size_t>(p.size) * in.size());
    args.refuse_overlap(in.size(), out.size(),
                        static_cast<std::ptrdiff_t>(static_cast<std::size_t>(p.rank) * in.size()));
  } else {
    args.output = nullptr;
  }
  return args;
}

}  // namespace detail

COLLX_DETAIL_FORMS(gather)

}  // namespace collx::inline abi_1
