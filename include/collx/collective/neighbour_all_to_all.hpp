// SPDX-License-Identifier: Apache-2.0
// neighbour_all_to_all: every rank has a block for each of its destinations in a graph, and takes one from
// each of its sources.
//
//   graph edges(comm, sources, destinations);                 graph.hpp
//   neighbour_all_to_all(comm, edges, in, out)                 in: destinations * count, out: sources * count
//   neighbour_all_to_all_v(comm, edges, blocks{in, in_counts}, blocks{out, out_counts})
//
// Block k of in goes to destinations[k], block k of out comes from sources[k]; ranks may occur several
// times. The rest as for neighbour_all_gather (neighbour_all_gather.hpp).
#pragma once

#include "collx/collective/graph.hpp"

namespace collx::inline abi_1 {
namespace detail {

template <buffer_like In, buffer_like Out>
[[nodiscard]] neighbour_call bind_neighbour_all_to_all(problem, graph const& edges, In& in,
                                                       Out& out) noexcept {
  auto args = bind_buffers<struct on_a_graph>(in, out, unreduced{});
  std::size_t const sources = edges.sources().size(), destinations = edges.destinations().size();
  std::size_t const count = destinations != 0 ? in.size() / destinations
                            : sources != 0    ? out.size() / sources
                                              : 0;
  args.refuse_if_absurd(in.size());
  args.refuse_if_absurd(count, sources);
  args.require_memory(null_input, args.input, in.size());
  args.require_memory(null_output, args.output, out.size());
  args.require_count("the input must have the same number of elements for every destination", in.size(),
                     count * destinations);
  args.require_count("the output must have as many elements for every source as the input for a destination",
                     out.size(), count * sources);
  args.refuse_any_overlap(in.size(), out.size());
  return bind_to_graph("neighbour_all_to_all", edges, args, equal_places(args.input, count, count),
                       equal_places(args.output, count, count));
}

template <class In, class Out>
[[nodiscard]] neighbour_call bind_neighbour_all_to_all_v(problem, graph const& edges, blocks<In> const& in,
                                                         blocks<Out> const& out) noexcept {
  auto args = bind_buffers<struct on_a_graph>(in.data, out.data, unreduced{});
  check_blocks(args, in, static_cast<rank_t>(edges.destinations().size()),
               "the input needs a count, and an offset or none, for every destination",
               "a block ends behind the end of the input", "two blocks of the input overlap");
  check_blocks(args, out, static_cast<rank_t>(edges.sources().size()),
               "the output needs a count, and an offset or none, for every source",
               "a block ends behind the end of the output", "two blocks of the output overlap");
  args.refuse_any_overlap(in.data.size(), out.data.size());
  return bind_to_graph("neighbour_all_to_all_v", edges, args, table_places(in), table_places(out));
}

}  // namespace detail

COLLX_DETAIL_FORMS(neighbour_all_to_all)
COLLX_DETAIL_FORMS(neighbour_all_to_all_v)

}  // namespace collx::inline abi_1
