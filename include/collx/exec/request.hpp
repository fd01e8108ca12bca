// SPDX-License-Identifier: Apache-2.0
// A started collective: a type-erased executor in a slot of its communicator. The blocking call and
// the started one run the same executor; only who calls advance() differs.
#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include "collx/core/error.hpp"
#include "collx/exec/host_executor.hpp"

namespace collx::inline abi_1::exec {

// Room for one executor with a small operator. Larger callables are refused at compile time.
inline constexpr std::size_t slot_bytes = 512;

// What a communicator knows of a collective in flight, apart from its types.
struct flight {
  status (*advance)(void*) noexcept = nullptr;
  cursor (*where)(void const*) noexcept = nullptr;
  failure_report report{};  // names and sequence are set at the start, the rest on failure
  status outcome = status::pending;
  std::uint64_t started_us = 0;
  std::uint32_t generation = 0;
  int lane = 0;
  bool occupied = false;
  bool running = false;  // false: waits for an earlier request to leave its lane
  alignas(64) std::byte storage[slot_bytes];
};

template <class Executor>
void install(flight& slot, auto&& make) noexcept {
  static_assert(sizeof(Executor) <= slot_bytes, "collx: the operator's captures are too large to be started; "
                                                "capture a pointer, or use the blocking call");
  static_assert(std::is_trivially_destructible_v<Executor>);
  ::new (static_cast<void*>(slot.storage)) Executor(make());
  slot.advance = [](void* p) noexcept { return static_cast<Executor*>(p)->advance(); };
  slot.where = [](void const* p) noexcept { return static_cast<Executor const*>(p)->where(); };
}

}  // namespace collx::inline abi_1::exec
