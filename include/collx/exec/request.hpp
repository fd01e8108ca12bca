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

// An executor behind its machine: what waits for one needs to know no more.
template <class Executor, class Endpoint>
[[nodiscard]] status advance_as(resumable<Endpoint>& machine) noexcept {
  return static_cast<Executor&>(machine).advance();
}

// Room for one executor with a small operator. Larger callables are refused at compile time.
inline constexpr std::size_t slot_bytes = 512;

// Names a request in flight. A stale one (its slot reused) is told by its generation: how it ended is
// forgotten, but had it failed, so would the communicator have.
struct ticket {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
};

// What a communicator knows of a collective in flight, apart from its types.
template <class Endpoint>
struct flight {
  flight() noexcept {}  // a function, as of kept_map

  status (*advance)(resumable<Endpoint>&) noexcept = nullptr;
  resumable<Endpoint>* machine = nullptr;  // in `storage`, once it has begun
  void (*begin)(flight&) noexcept = nullptr;
  failure_report report{};  // names and sequence are set at the start, the rest on failure
  status outcome = status::pending;
  std::uint64_t started_us = 0;
  std::uint64_t moved_us = 0;  // when a test last saw it get on
  cursor seen{};               // and where it was
  std::uint32_t generation = 0;
  ticket behind{};  // begins when that one has ended; generation 0: behind nobody
  int lane = 0;
  bool urgent = false;
  bool occupied = false;
  bool running = false;  // was started and has neither ended nor failed
  alignas(64) std::byte storage[slot_bytes];

  // The executor is made when its lane is free: until then `make` lies in its place.
  template <class Executor, class Make>
  void install(Make const& make) noexcept {
    static_assert(sizeof(Executor) <= slot_bytes && sizeof(Make) <= slot_bytes,
                  "collx: the operator's captures are too large to be started; "
                  "capture a pointer, or use the blocking call");
    static_assert(std::is_trivially_destructible_v<Executor> && std::is_trivially_copyable_v<Make>);
    ::new (static_cast<void*>(storage)) Make(make);
    machine = nullptr;
    advance = &advance_as<Executor, Endpoint>;
    begin = [](flight& self) noexcept {
      Make const maker = *std::launder(reinterpret_cast<Make*>(self.storage));
      self.machine = ::new (static_cast<void*>(self.storage)) Executor(maker(self.lane));
    };
  }

  // Whether nobody has been told yet how that one ended.
  [[nodiscard]] bool holds(ticket t) const noexcept { return generation == t.generation && occupied; }
  [[nodiscard]] bool in_flight() const noexcept { return running && outcome == status::pending; }
  [[nodiscard]] cursor where() const noexcept {
    cursor at = machine == nullptr ? cursor{} : machine->where();
    at.sequence = report.sequence;
    return at;
  }
};

// The begin of a report of a call, and where and how it ended.
[[nodiscard]] inline failure_report report_of(call const& what, std::uint64_t sequence) noexcept {
  failure_report report;
  report.collective = what.collective;
  report.algorithm = what.algorithm;
  report.sequence = sequence;
  return report;
}
inline void say_where(failure_report& report, status outcome, cursor const& at) noexcept {
  report.code = outcome;
  report.peer = at.waits_for;
  report.step = at.step;
  report.step_count = at.step_count;
  report.bytes = at.bytes;
  report.peer_bytes = at.peer_bytes;
}

// Requests on one lane run one after the other, in the order they were started, and each when the one that
// it is behind has ended, on whichever lane: the one that `slot` waits for in the end, or itself. Each found
// here was started before the last, so the search ends.
template <class Endpoint>
[[nodiscard]] flight<Endpoint>& ahead_of(flight<Endpoint>* all, std::uint32_t count,
                                         flight<Endpoint>& slot) noexcept {
  flight<Endpoint>* first = &slot;
  for (;;) {
    int const lane = first->lane;
    for (std::uint32_t i = 0; i < count; ++i)
      if (all[i].in_flight() && all[i].lane == lane && all[i].report.sequence < first->report.sequence)
        first = &all[i];
    flight<Endpoint>& before = all[first->behind.slot];
    if (before.generation != first->behind.generation || !before.in_flight()) return *first;
    first = &before;
  }
}

// One in flight, besides `mine`, that waits for a rank that is lost; null: none.
template <class Endpoint>
[[nodiscard]] flight<Endpoint>* held_up_by_lost(flight<Endpoint>* all, std::uint32_t count,
                                                flight<Endpoint> const* mine, Endpoint& endpoint) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) {
    rank_t const peer = &all[i] != mine && all[i].in_flight() ? all[i].where().waits_for : no_rank;
    if (peer != no_rank && endpoint.interrupted(peer) == status::peer_lost) return &all[i];
  }
  return nullptr;
}

}  // namespace collx::inline abi_1::exec
