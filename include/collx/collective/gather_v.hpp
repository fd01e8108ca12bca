// SPDX-License-Identifier: Apache-2.0
// gather_v: the root gets every rank's vector, which may have counts of their own.
//
//   gather_v(comm, in, blocks{out, counts}, root)     with offsets if wanted; root defaults to 0
//   gather_v(comm, in, blocks<T>{}, root)             on the other ranks
//
// Only the root knows all counts, in elements, as std::size_t; counts[r] must be in.size() on rank r: that
// it is not is found when the message comes (status::mismatch), but for what all_to_all_v.hpp says of
// counts of 0. Nothing is sent for these.
// In place is in == the own block of out, on the root.
// Algorithm argument, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/blocks.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, class T>
[[nodiscard]] auto bind_gather_v(problem p, In& in, blocks<T> const& out, rank_argument root = 0) noexcept {
  auto args = bind_buffers<contract::gather_v>(in, out.data, unreduced{});
  args.require_root(p, root);
  args.count = in.size();
  args.refuse_if_absurd(args.count);
  args.require_memory(null_input, args.input, args.count);
  if (p.rank != root.value) {
    args.output = nullptr;
    return args;
  }
  check_blocks(args, out, p.size, "the root's output needs a count, and an offset or none, for every rank",
               "a block ends behind the end of the output", "two blocks of the output overlap");
  if (args.fault != nullptr) return args;
  args.count = largest_of(out.counts);
  args.require_count("the root's input must have as many elements as its own block of the output", in.size(),
                     out.counts[static_cast<std::size_t>(p.rank)]);
  args.refuse_overlap(in.size(), out.data.size(), static_cast<std::ptrdiff_t>(offset_of(out, p.rank)));
  args.tables = {own_block(out.counts), table_of(out)};
  return args;
}

}  // namespace detail

COLLX_DETAIL_FORMS(gather_v)

}  // namespace collx::inline abi_1
