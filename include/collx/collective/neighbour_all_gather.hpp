// SPDX-License-Identifier: Apache-2.0
// neighbour_all_gather: every rank gives its block to its destinations in a graph, and takes one from each
// of its sources.
//
//   graph edges(comm, sources, destinations);                 graph.hpp
//   neighbour_all_gather(comm, edges, in, out)                 in: count, out: sources * count
//   neighbour_all_gather_v(comm, edges, in, blocks{out, counts})     with offsets if wanted
//
// Block k of out is the in of sources[k], in the order of the graph; ranks may occur several times. In the
// _v form every rank has a count of its own, and counts[k] is that of sources[k]; counts without offsets
// are added up per source, so give offsets to graphs with thousands of edges. That counts disagree is found
// when the message comes (status::mismatch, with the peer and both numbers of bytes). All ranks call it,
// with no edges if need be; not in place. Forms and errors: as for all_reduce (all_reduce.hpp), without an
// algorithm to choose: all messages move at once.
#pragma once

#include "collx/collective/graph.hpp"

namespace collx::inline abi_1 {
namespace detail {

template <buffer_like In, buffer_like Out>
[[nodiscard]] neighbour_call bind_neighbour_all_gather(problem, graph const& edges, In& in,
                                                       Out& out) noexcept {
  auto args = bind_buffers<struct on_a_graph>(in, out, unreduced{});
  args.refuse_if_absurd(in.size(), edges.sources().size() + 1);
  if (!edges.destinations().empty()) args.require_memory(null_input, args.input, in.size());
  args.require_memory(null_output, args.output, out.size());
  args.require_count("the output must have as many elements as the input, for every source", out.size(),
                     in.size() * edges.sources().size());
  args.refuse_any_overlap(in.size(), out.size());
  return bind_to_graph("neighbour_all_gather", edges, args, equal_places(args.input, in.size(), 0),
                       equal_places(args.output, in.size(), in.size()));
}

template <buffer_like In, class T>
[[nodiscard]] neighbour_call bind_neighbour_all_gather_v(problem, graph const& edges, In& in,
                                                         blocks<T> const& out) noexcept {
  auto args = bind_buffers<struct on_a_graph>(in, out.data, unreduced{});
  check_blocks(args, out, static_cast<rank_t>(edges.sources().size()),
               "the output needs a count, and an offset or none, for every source",
               "a block ends behind the end of the output", "two blocks of the output overlap");
  args.refuse_if_absurd(in.size());
  if (!edges.destinations().empty()) args.require_memory(null_input, args.input, in.size());
  args.refuse_any_overlap(in.size(), out.data.size());
  return bind_to_graph("neighbour_all_gather_v", edges, args, equal_places(args.input, in.size(), 0),
                       table_places(out));
}

}  // namespace detail

COLLX_DETAIL_FORMS(neighbour_all_gather)
COLLX_DETAIL_FORMS(neighbour_all_gather_v)

}  // namespace collx::inline abi_1
