// SPDX-License-Identifier: Apache-2.0
// The one-byte outcome of everything on the data path; the same type on host and device.
#pragma once

#include <cstdint>

#include "collx/core/config.hpp"

namespace collx::inline abi_1 {

enum class status : std::uint8_t {
  ok = 0,
  pending,         // not finished; ask again
  timeout,         // the deadline passed while waiting for a peer
  aborted,         // somebody aborted this communicator
  peer_lost,       // a peer's process is gone
  mismatch,        // ranks disagree on count, type, operator or order of collectives
  bad_argument,    // refused before anything was sent
  out_of_memory,   // symmetric memory or a table of fixed size is exhausted
  not_supported,   // this build, machine or rank count cannot do it
  system_failure,  // a system call failed; the error names it
};

[[nodiscard]] COLLX_HD constexpr char const* name(status s) noexcept {
  switch (s) {
    case status::ok: return "ok";
    case status::pending: return "pending";
    case status::timeout: return "timeout";
    case status::aborted: return "aborted";
    case status::peer_lost: return "peer lost";
    case status::mismatch: return "mismatch";
    case status::bad_argument: return "bad argument";
    case status::out_of_memory: return "out of memory";
    case status::not_supported: return "not supported";
    case status::system_failure: return "system failure";
  }
  return "unknown status";
}

}  // namespace collx::inline abi_1
