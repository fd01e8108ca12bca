// SPDX-License-Identifier: Apache-2.0
// reduce_scatter_v: the combination of all ranks' vectors, a block for each rank, which may differ.
//
//   out[i] = in_0[offset + i] op ... op in_{n-1}[offset + i]     for i < counts[rank], offset its block's
//
//   reduce_scatter_v(comm, blocks{in, counts}, out, op)     out: counts[rank] elements; op defaults to sum
//   reduce_scatter_v(comm, blocks{in, counts, offsets}, out, op)
//
// counts and offsets (in elements): as std::size_t, the same counts on every rank; offsets may differ.
// In place is out == the own block of in.
// Algorithm argument, operators, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/blocks.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <class T, buffer_like Out, class Op = sum_t>
[[nodiscard]] auto bind_reduce_scatter_v(problem p, blocks<T> const& in, Out& out,
                                         Op const& op = {}) noexcept {
  auto args = bind_reduction<contract::reduce_scatter_v>(in.data, out, op);
  check_blocks(args, in, p.size, "the input needs a count, and an offset or none, for every rank",
               "a block ends behind the end of the input", "two blocks of the input overlap");
  if (args.fault != nullptr) return args;
  args.count = largest_of(in.counts);
  args.require_count("the output must have as many elements as the own block of the input", out.size(),
                     in.counts[static_cast<std::size_t>(p.rank)]);
  args.require_memory(null_output, args.output, out.size());
  args.refuse_overlap(in.data.size(), out.size(), negative(offset_of(in, p.rank)));
  args.tables = {table_of(in), own_block(in.counts)};
  return args;
}

}  // namespace detail

COLLX_DETAIL_FORMS(reduce_scatter_v)

}  // namespace collx::inline abi_1
