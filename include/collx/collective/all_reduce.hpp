// SPDX-License-Identifier: Apache-2.0
// all_reduce: every rank ends with the combination of all ranks' vectors.
//
//   out[i] = in_0[i] op in_1[i] op ... op in_{n-1}[i]     on every rank
//
//   all_reduce(comm, in, out, op)     all_reduce(comm, inout, op)     op defaults to sum
//
// in, out: contiguous ranges of the same count on every rank, the same memory or separate (other
// overlap is refused). A count of 0 returns at once and synchronises nobody, unless the communicator
// compares calls (checking). One thread at a time uses a communicator. op: any callable T(T, T), see
// op/reduction.hpp. The first template argument is the algorithm: a type of algo/, a schedule of your
// own, or automatic. When the call returns (for start:: when the request is done) out is complete and
// in may be changed. start:: and persistent:: copy op; what it refers to must stay as long as the buffers.
//
// Errors: bad_argument and not_supported are found before anything is sent and leave everything as
// it was. After timeout, peer_lost, mismatch, aborted, system_failure or out_of_memory, out is
// undefined and the communicator refuses further calls. The plain form throws error, try_ returns the
// status, start:: throws for bad arguments and hands the rest to the request.
#pragma once

#include "collx/collective/forms.hpp"

namespace collx::inline abi_1 {

namespace detail {

template <buffer_like In, buffer_like Out, class Op = sum_t>
[[nodiscard]] auto bind_all_reduce(problem, In& in, Out& out, Op const& op = {}) noexcept {
  auto args = bind_reduction<contract::all_reduce>(in, out, op);
  args.count = out.size();
  args.refuse_if_absurd(args.count);
  args.require_count("the input must have as many elements as the output", in.size(), out.size());
  args.refuse_overlap(in.size(), out.size(), 0);
  return args;
}

template <buffer_like InOut, class Op = sum_t>
  requires(!buffer_like<Op>)
[[nodiscard]] auto bind_all_reduce(problem p, InOut& inout, Op const& op = {}) noexcept {
  return bind_all_reduce(p, inout, inout, op);
}

}  // namespace detail

COLLX_DETAIL_FORMS(all_reduce)

}  // namespace collx::inline abi_1
