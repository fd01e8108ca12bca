// SPDX-License-Identifier: Apache-2.0
// all_gather_v: every rank gets every rank's vector, which may have counts of their own.
//
//   out[offset_r + i] = in_r[i]     for i < counts[r], r < size
//
//   all_gather_v(comm, in, blocks{out, counts})          in: counts[rank] elements
//   all_gather_v(comm, in, blocks{out, counts, offsets})
//
// counts and offsets (in elements): as std::size_t, the same counts on every rank; offsets may differ.
// Blocks must not overlap. In place is in == the own block of out. A count of 0 is as good as any.
// Algorithm argument, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/blocks.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, class T>
[[nodiscard]] auto bind_all_gather_v(problem p, In& in, blocks<T> const& out) noexcept {
  auto args = bind_buffers<contract::all_gather_v>(in, out.data, unreduced{});
  check_blocks(args, out, p.size, "the output needs a count, and an offset or none, for every rank",
               "a block ends behind the end of the output", "two blocks of the output overlap");
  if (args.fault != nullptr) return args;
  args.count = largest_of(out.counts);
  args.require_count("the input must have as many elements as the own block of the output", in.size(),
                     out.counts[static_cast<std::size_t>(p.rank)]);
  args.require_memory(null_input, args.input, in.size());
  args.refuse_overlap(in.size(), out.data.size(), static_cast<std::ptrdiff_t>(offset_of(out, p.rank)));
  args.tables = {own_block(out.counts), table_of(out)};
  return args;
}

}  // namespace detail

COLLX_DETAIL_FORMS(all_gather_v)

}  // namespace collx::inline abi_1
