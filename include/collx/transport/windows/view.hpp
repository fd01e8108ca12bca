// SPDX-License-Identifier: Apache-2.0
// What one rank knows of a group whose members map each other's windows: an argument of kernels.
#pragma once

#include "collx/device/patience.hpp"
#include "collx/transport/windows/layout.hpp"

namespace collx::inline abi_1::transport::windows {

// A peer's memory, as this rank sees it.
struct peer_view {
  std::byte* window = nullptr;
  std::int64_t window_shift = 0;  // to be added to the peer's address of something in its window
  std::int64_t heap_shift = 0;    // the same for memory it has registered
};

// What went wrong first on this rank. In memory of the host that kernels write to; the host reads it once
// `code` is not 0 (status::ok).
struct report {
  std::uint32_t code;
  std::int32_t lane, step, peer;
  std::uint64_t fragment, bytes;
  std::uint32_t stopped_by;  // 1 + a rank, or 0: the host, or nobody
  // With status::mismatch: how many more calls the peer has made before the one that its message is of; and
  // how many this rank has.
  std::int64_t calls_ahead;
  std::uint64_t calls;
  char const* collective;  // of the view that the call was given
  std::uint64_t sequence;
};

struct view {
  rank_t rank = 0, size = 1;
  layout where{};
  int lanes = 1;  // in use, of those that the layout has
  std::byte* own = nullptr;
  peer_view const* peers = nullptr;  // of all ranks, itself included
  // Memory that peers can read, besides windows: what lies in [heap_begin, heap_end).
  std::uintptr_t heap_begin = 0, heap_end = 0;
  device::patience limits{};
  report* failure = nullptr;
  // Of one call, for its report: its name, which is the host's and only passed on, and its number. Of a
  // graph, the number when it was recorded.
  char const* collective = nullptr;
  std::uint64_t sequence = 0;

  [[nodiscard]] COLLX_HD head& own_head() const noexcept { return *reinterpret_cast<head*>(own); }
  [[nodiscard]] COLLX_HD lane_state& state(int lane) const noexcept {
    return *reinterpret_cast<lane_state*>(own + where.state(lane));
  }
};

}  // namespace collx::inline abi_1::transport::windows
