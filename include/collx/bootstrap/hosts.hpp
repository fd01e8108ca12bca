// SPDX-License-Identifier: Apache-2.0
// What the hosts of all ranks say about how ranks lie.
#pragma once

#include "collx/core/array.hpp"
#include "collx/core/processors.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1::bootstrap {

// How many ranks each host has, if all have equally many and ranks of one host follow each other; or else 1.
[[nodiscard]] inline rank_t ranks_per_host(array<std::uint64_t> const& hosts) noexcept {
  std::size_t each = 1;
  while (each < hosts.size() && hosts[each] == hosts[0]) ++each;
  if (hosts.size() % each != 0) return 1;
  for (std::size_t r = 0; r < hosts.size(); ++r) {
    bool const begins = r % each == 0;
    if (r != 0 && begins == (hosts[r] == hosts[r - 1])) return 1;
    // A host that comes again later would be two groups.
    for (std::size_t earlier = 0; begins && earlier < r; earlier += each)
      if (hosts[earlier] == hosts[r]) return 1;
  }
  return static_cast<rank_t>(each);
}

[[nodiscard]] inline rank_t ranks_on_host_of(array<std::uint64_t> const& hosts, rank_t rank) noexcept {
  rank_t count = 0;
  for (std::uint64_t const host : hosts) count += host == hosts[static_cast<std::size_t>(rank)];
  return count;
}

// Whether the ranks of some machine are more than the processors that they may use together. Sets that
// overlap and are not equal count twice.
[[nodiscard]] inline bool share_processors(array<std::uint64_t> const& machines,
                                           array<processor_set::summary> const& processors) noexcept {
  for (std::size_t r = 0; r < machines.size(); ++r) {
    std::size_t ranks = 0;
    std::uint64_t different = 0;
    for (std::size_t other = 0; other < machines.size(); ++other) {
      if (machines[other] != machines[r]) continue;
      if (other < r) break;  // this machine has been looked at
      ++ranks;
      bool known = false;
      for (std::size_t before = r; before < other && !known; ++before)
        known = machines[before] == machines[r] && processors[before] == processors[other];
      if (!known) different += processors[other].count;
    }
    if (ranks > different) return true;
  }
  return false;
}

}  // namespace collx::inline abi_1::bootstrap
