// SPDX-License-Identifier: Apache-2.0
// reduce_scatter: the combination of all ranks' vectors, one block for each rank.
//
//   out[i] = in_0[rank * count + i] op ... op in_{n-1}[rank * count + i]     for i < count
//
//   reduce_scatter(comm, in, out, op)     in: size * count elements, out: count
//
// In place is out == in + rank * count; the rest of in then keeps its values.
// Algorithm argument, operators, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, buffer_like Out, class Op = sum_t>
[[nodiscard]] auto bind_reduce_scatter(problem p, In& in, Out& out, Op const& op = {}) noexcept {
  auto args = bind_reduction<contract::reduce_scatter>(in, out, op);
  args.count = out.size();
  auto const size = static_cast<std::size_t>(p.size);
  args.refuse_if_absurd(args.count, size);
  args.require_count("the input must have as many elements as all outputs together", in.size(),
                     size * out.size());
  args.refuse_overlap(in.size(), out.size(),
                      negative(static_cast<std::size_t>(p.rank) * out.size()));
  return args;
}

}  // namespace detail

COLLX_DETAIL_FORMS(reduce_scatter)

}  // namespace collx::inline abi_1
