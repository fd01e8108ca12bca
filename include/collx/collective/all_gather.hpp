// SPDX-License-Identifier: Apache-2.0
// all_gather: every rank ends with all ranks' blocks, in rank order.
//
//   out[r * count + i] = in_r[i]     for every rank r and i < count
//
//   all_gather(comm, in, out)     in: count elements, out: size * count
//
// In place is in == out + rank * count.
// Algorithm argument, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, buffer_like Out>
[[nodiscard]] auto bind_all_gather(problem p, In& in, Out& out) noexcept {
  auto args = bind_buffers<contract::all_gather>(in, out, unreduced{});
  args.count = in.size();
  auto const size = static_cast<std::size_t>(p.size);
  args.refuse_if_absurd(args.count, size);
  args.require_count("the output must have as many elements as all inputs together", out.size(),
                     size * in.size());
  args.refuse_overlap(in.size(), out.size(),
                      static_cast<std::ptrdiff_t>(static_cast<std::size_t>(p.rank) * in.size()));
  return args;
}

}  // namespace detail

COLLX_DETAIL_FORMS(all_gather)

}  // namespace collx::inline abi_1
