// SPDX-License-Identifier: Apache-2.0
// all_to_all: every rank has a block for every rank.
//
//   out[s * count + i] = in_s[rank * count + i]     for i < count, s < size
//
//   all_to_all(comm, in, out)     all_to_all(comm, inout)     in, out: size * count elements
//
// In place the block from rank s takes the place of the one to it.
// Algorithm argument, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, buffer_like Out>
[[nodiscard]] auto bind_all_to_all(problem p, In& in, Out& out) noexcept {
  auto args = bind_buffers<contract::all_to_all>(in, out, unreduced{});
  auto const size = static_cast<std::size_t>(p.size);
  args.count = out.size() / size;
  args.refuse_if_absurd(out.size());
  args.require_count("the output must have a multiple of size elements: a block from every rank", out.size(),
                     args.count * size);
  args.require_count("the input must have as many elements as the output", in.size(), out.size());
  args.refuse_overlap(in.size(), out.size(), 0);
  return args;
}

template <buffer_like InOut>
[[nodiscard]] auto bind_all_to_all(problem p, InOut& inout) noexcept {
  return bind_all_to_all(p, inout, inout);
}

}  // namespace detail

COLLX_DETAIL_FORMS(all_to_all)

}  // namespace collx::inline abi_1
