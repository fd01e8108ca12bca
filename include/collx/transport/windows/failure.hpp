// SPDX-License-Identifier: Apache-2.0
// What a kernel met with, as the host tells it: long after the call that it belongs to, maybe, and from
// another one.
#pragma once

#include <cstdio>

#include "collx/core/error.hpp"
#include "collx/device/system_atomic.hpp"
#include "collx/transport/windows/view.hpp"

namespace collx::inline abi_1::transport::windows {

// Lengths may agree where the calls that messages belong to do not.
COLLX_COLD inline void tell_calls(report const& told, failure_report& what) noexcept {
  what.differs_in = "place in the order of calls";
  std::uint64_t const there = told.calls + static_cast<std::uint64_t>(told.calls_ahead);
  std::snprintf(what.here, sizeof what.here, "%llu", static_cast<unsigned long long>(told.calls));
  std::snprintf(what.there, sizeof what.there, "%llu", static_cast<unsigned long long>(there));
}

// Throws error if a kernel of this rank has failed, with the report of the call that it was a part of; or
// (aborted) if this rank's host has said, by `stopped_by_host`, that all is over: it need not wait for a
// kernel to tell it so.
inline void throw_if_failed(report const& told, std::uint32_t const& stopped_by_host, rank_t rank) {
  // Acquire: the report's other words were written before its code.
  auto const code = static_cast<status>(device::load_acquire(&told.code));
  if (COLLX_UNLIKELY(code != status::ok)) {
    failure_report what;
    what.code = code;
    what.collective = told.collective == nullptr ? "a collective" : told.collective;
    what.algorithm = "on the GPU";
    what.sequence = told.sequence;
    what.rank = rank, what.peer = told.peer;
    what.step = told.step, what.bytes = told.bytes;
    what.step_count = failure_report::step_count_unknown;
    what.reported_by = static_cast<rank_t>(told.stopped_by) - 1;
    if (told.calls_ahead != 0) tell_calls(told, what);
    throw error(what);
  }
  // Relaxed: nothing is read because of it.
  if (COLLX_LIKELY(device::load_relaxed(&stopped_by_host) == 0)) return;
  throw_error(status::aborted, "gpu_communicator: abort() was called on rank %d; make a new group", rank);
}

}  // namespace collx::inline abi_1::transport::windows
