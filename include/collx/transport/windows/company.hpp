// SPDX-License-Identifier: Apache-2.0
// Who shares what with whom in a group of windows, as far as it matters for how many blocks a call may have
// and for which memory peers reach. From what ranks have told each other.
#pragma once

#include <cstring>
#include <span>

#include "collx/core/error.hpp"

namespace collx::inline abi_1::transport::windows {

struct company {
  bool is_one_process = true;
  // Another rank of this process has the same device; or has another one.
  bool shares_device = false, spans_devices = false;
  // Blocks that wait for each other must all run, whoever's they are: one for each multiprocessor. The same
  // on all ranks: of the smallest device, for as many ranks as share any. At least 1.
  int lanes_max = 1;
  int ranks_here = 1;  // of this process, on this device
};

// `Announcement`: device (bytes that name it, everywhere), ordinal (of the device, in its process),
// processors (of the device), is_of_process_of(other). Of all ranks; `rank`: whose company it is.
template <class Announcement>
[[nodiscard]] company company_of(std::span<Announcement const> all, rank_t rank) noexcept {
  company found;
  Announcement const& mine = all[static_cast<std::size_t>(rank)];
  int most_on_one = 1, processors = mine.processors;
  for (Announcement const& each : all) {
    int here = 0;
    for (Announcement const& other : all)
      here += std::memcmp(each.device, other.device, sizeof each.device) == 0;
    most_on_one = here > most_on_one ? here : most_on_one;
    processors = each.processors < processors ? each.processors : processors;
    bool const is_near = each.is_of_process_of(mine);
    found.is_one_process = found.is_one_process && is_near;
    found.ranks_here += &each != &mine && is_near && each.ordinal == mine.ordinal;
    found.spans_devices = found.spans_devices || (is_near && each.ordinal != mine.ordinal);
  }
  found.lanes_max = processors / most_on_one < 1 ? 1 : processors / most_on_one;
  found.shares_device = found.ranks_here > 1;
  return found;
}

// The same, where they can work. Processes that share a device take turns on it; blocks of one process that
// have no multiprocessor of their own may never begin, while others wait for them.
template <class Announcement>
[[nodiscard]] COLLX_COLD company working_company_of(std::span<Announcement const> all, rank_t rank) {
  company const found = company_of(all, rank);
  int const processors = all[static_cast<std::size_t>(rank)].processors;
  if (found.ranks_here > processors)
    throw_error(status::not_supported,
                "gpu_communicator: %d ranks of this process share a device of %d multiprocessors; let at "
                "most so many share it, or make them processes",
                found.ranks_here, processors);
  return found;
}

}  // namespace collx::inline abi_1::transport::windows
