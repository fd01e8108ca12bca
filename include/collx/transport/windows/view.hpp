// SPDX-License-Identifier: Apache-2.0
// What one rank knows of a group whose members map each other's windows: an argument of kernels.
#pragma once

#include "collx/device/patience.hpp"
#include "collx/transport/windows/layout.hpp"

namespace collx::inline abi_1::transport::windows {

// Memory of a rank that all ranks have registered together: where it lies there, and what a rank that sees it
// adds to an address in it.
struct registered_range {
  std::uintptr_t begin = 0, end = 0;
  std::int64_t shift = 0;

  [[nodiscard]] COLLX_HD bool contains(std::uintptr_t address) const noexcept {
    return address >= begin && address < end;
  }
};

// How many a group may have at a time. Each rank has a list for every rank, of one more, that ends with a
// range whose `end` is 0. One that was given up in between begins and ends at 1.
inline constexpr int registrations_max = 16;
inline constexpr int registered_list = registrations_max + 1;

// A peer's memory, as this rank sees it.
struct peer_view {
  std::byte* window = nullptr;
  std::int64_t window_shift = 0;  // to be added to the peer's address of something in its window
  std::int64_t heap_shift = 0;    // the same for its heap
  registered_range const* registered = nullptr;  // the list of what it has registered; null: there is none

  // What to add to an address of the peer's, outside of its window.
  [[nodiscard]] COLLX_HD std::int64_t shift_of(std::uint64_t address) const noexcept {
    for (registered_range const* r = registered; r != nullptr && r->end != 0; ++r)
      if (r->contains(address)) return r->shift;
    return heap_shift;
  }
  // What was added to it, to come to an address of this rank's.
  [[nodiscard]] COLLX_HD std::int64_t shift_to(std::uint64_t here) const noexcept {
    for (registered_range const* r = registered; r != nullptr && r->end != 0; ++r)
      if (r->contains(here - static_cast<std::uint64_t>(r->shift)))
        return r->shift;
    return heap_shift;
  }
  // Whether all of it was registered at once.
  [[nodiscard]] COLLX_HD bool has_registered(std::uintptr_t begin, std::size_t bytes) const noexcept {
    for (registered_range const* r = registered; r != nullptr && r->end != 0; ++r)
      if (r->contains(begin) && bytes <= r->end - begin) return true;
    return false;
  }
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
  device::reach reach = device::reach::system;  // of what ranks tell each other
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
