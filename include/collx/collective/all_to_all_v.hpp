// SPDX-License-Identifier: Apache-2.0
// all_to_all_v: every rank has a block of any count for every rank.
//
//   all_to_all_v(comm, blocks{in, in_counts}, blocks{out, out_counts})     both with offsets if wanted
//
// Block d of in goes to rank d and becomes block `rank` of its out: in_counts[d] here and out_counts[rank]
// there must be the same number; that they are not is found when the message comes (status::mismatch, with
// the peer and both numbers of bytes). counts and offsets, in elements, as std::size_t, are this rank's own.
// Nothing is sent for a count of 0, nor looked for: where only one of the two is 0, or they differ by whole
// fragments, a later call finds the message that is left, or waits for one that never comes. Not in place.
// Algorithm argument, buffers and errors: as for all_reduce (all_reduce.hpp).
#pragma once

#include "collx/collective/blocks.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <class In, class Out>
[[nodiscard]] auto bind_all_to_all_v(problem p, blocks<In> const& in, blocks<Out> const& out) noexcept {
  auto args = bind_buffers<contract::all_to_all_v>(in.data, out.data, unreduced{});
  check_blocks(args, in, p.size, "the input needs a count, and an offset or none, for every rank",
               "a block ends behind the end of the input", "two blocks of the input overlap");
  check_blocks(args, out, p.size, "the output needs a count, and an offset or none, for every rank",
               "a block ends behind the end of the output", "two blocks of the output overlap");
  if (args.fault != nullptr) return args;
  std::size_t const largest_in = largest_of(in.counts), largest_out = largest_of(out.counts);
  args.count = largest_in > largest_out ? largest_in : largest_out;
  auto const own = static_cast<std::size_t>(p.rank);
  args.require_count("this rank must send itself as many elements as it takes from itself", in.counts[own],
                     out.counts[own]);
  args.refuse_any_overlap(in.data.size(), out.data.size());
  args.tables = {table_of(in), table_of(out)};
  return args;
}

}  // namespace detail

COLLX_DETAIL_FORMS(all_to_all_v)

}  // namespace collx::inline abi_1
