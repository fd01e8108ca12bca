// SPDX-License-Identifier: Apache-2.0
// scatter_v: every rank gets its block of the root's vector, of any count.
//
//   scatter_v(comm, blocks{in, counts}, out, root)     with offsets if wanted; root defaults to 0
//   scatter_v(comm, blocks<T>{}, out, root)            on the other ranks
//
// Only the root knows all counts, in elements, as std::size_t; counts[r] must be out.size() on rank r: that
// it is not is found when the message comes (status::mismatch), but for what all_to_all_v.hpp says of
// counts of 0. Nothing is sent for these.
// In place is out == the own block of in, on the root.
// Algorithm argument, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/blocks.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <class T, buffer_like Out>
[[nodiscard]] auto bind_scatter_v(problem p, blocks<T> const& in, Out& out, rank_argument root = 0) noexcept {
  auto args = bind_buffers<contract::scatter_v>(in.data, out, unreduced{});
  args.require_root(p, root);
  args.count = out.size();
  args.refuse_if_absurd(args.count);
  args.require_memory(null_output, args.output, args.count);
  if (p.rank != root.value) {
    args.input = nullptr;
    return args;
  }
  check_blocks(args, in, p.size, "the root's input needs a count, and an offset or none, for every rank",
               "a block ends behind the end of the input", "two blocks of the input overlap");
  if (args.fault != nullptr) return args;
  args.count = largest_of(in.counts);
  args.require_count("the root's output must have as many elements as its own block of the input", out.size(),
                     in.counts[static_cast<std::size_t>(p.rank)]);
  args.refuse_overlap(in.data.size(), out.size(), negative(offset_of(in, p.rank)));
  args.tables = {table_of(in), own_block(in.counts)};
  return args;
}

}  // namespace detail

COLLX_DETAIL_FORMS(scatter_v)

}  // namespace collx::inline abi_1
