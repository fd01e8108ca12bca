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

#include "collx/collective/call.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, buffer_like Out, class Op = sum_t>
[[nodiscard]] auto bind_reduce_scatter(problem p, In& in, Out& out, Op const& op = {}) noexcept {
  auto args = bind_reduction<contract::reduce_scatter>(in, out, op);
  args.count = out.size();
  auto const size = static_cast<std::size_t>(p.size);
  args.require_count("the input must have as many elements as all outputs together", in.size(),
                     size * out.size());
  args.refuse_overlap(in.size(), out.size(),
                      -static_cast<std::ptrdiff_t>(static_cast<std::size_t>(p.rank) * out.size()));
  return args;
}

}  // namespace detail

template <class Algorithm = automatic, class Transport, class... Arguments>
void reduce_scatter(communicator<Transport>& comm, Arguments&&... arguments) {
  detail::run_or_throw<Algorithm>(comm.engine(),
                                  detail::bind_reduce_scatter(detail::where(comm), arguments...));
}

template <class Algorithm = automatic, class Transport, class... Arguments>
[[nodiscard]] status try_reduce_scatter(communicator<Transport>& comm, Arguments&&... arguments) noexcept {
  return detail::run<Algorithm>(comm.engine(),
                                detail::bind_reduce_scatter(detail::where(comm), arguments...));
}

namespace start {

template <class Algorithm = automatic, class Transport, class... Arguments>
[[nodiscard]] auto reduce_scatter(communicator<Transport>& comm, Arguments&&... arguments) {
  return detail::begin<Algorithm>(comm.engine(),
                                  detail::bind_reduce_scatter(detail::where(comm), arguments...));
}

}  // namespace start
}  // namespace collx::inline abi_1
