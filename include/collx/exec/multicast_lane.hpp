// SPDX-License-Identifier: Apache-2.0
// What a lane of a GPU does where a switch adds up (NVLS): memory of which every rank has a replica, and an
// address at which a load gives the sum of all replicas and a store goes to all of them. Each rank reduces
// its share, so that every element passes each link once in either direction.
#pragma once

#include "collx/device/share.hpp"
#include "collx/exec/lane_machine.hpp"

namespace collx::inline abi_1::exec {

struct no_operator {};

// The machine that meets: it moves nothing.
template <device::team Team, class Port>
using meeting_machine = lane_machine<false, std::byte, no_operator, Team, Port>;

// Leaves the sum of all replicas in all of them. `Meeting`: the schedule of a barrier; `machine`: made for
// it. `memory`: sum(i) and store(i, value) of the i-th 16 bytes, `vectors` in all; begin() and end() around
// them, by all threads, order accesses at that address and others to the same memory. Lane `lane` of `lanes`,
// on all ranks.
template <schedule Meeting, class Machine, device::team Team, class Memory>
[[nodiscard]] COLLX_HD bool reduce_replicas(Machine& machine, Team& team, problem const& p,
                                            Memory const& memory, std::size_t vectors, int lane,
                                            int lanes) noexcept {
  constexpr std::size_t line_vectors = 8;  // shares end between lines of 128 bytes
  // They meet twice: when all contributions are there, and when all results are. Lanes wait for each other's
  // namesakes only, and may: what was in the stream before this kernel is done on each rank whose lane has
  // begun. In a loop, or a kernel would have all that a meeting takes twice.
  COLLX_NO_UNROLL
  for (int met = 0; met < 2; ++met) {
    if (!machine.template meet<Meeting>()) return false;
    if (met == 1) break;
    memory.begin();
    auto const ranks = static_cast<std::size_t>(p.size);
    device::share const mine = device::share_of(
        vectors, line_vectors, static_cast<std::size_t>(lane) * ranks + static_cast<std::size_t>(p.rank),
        static_cast<std::size_t>(lanes) * ranks);
    auto const threads = static_cast<std::size_t>(team.size());
    for (std::size_t i = static_cast<std::size_t>(team.rank()); i < mine.count; i += threads)
      memory.store(mine.begin + i, memory.sum(mine.begin + i));
    memory.end();
  }
  machine.leave();
  return true;
}

}  // namespace collx::inline abi_1::exec
