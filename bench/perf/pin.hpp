// SPDX-License-Identifier: Apache-2.0
// One rank per core, as the launchers of MPI do it. A core here is what Linux calls a CPU: one of two where
// the processor runs two threads on each of its cores.
#pragma once

#include <string>
#include <vector>

namespace perf {

// Ascending `cpus` in the order in which ranks take them: one of each core first, and only then the others
// of the same core, as `folder` (of sysfs) says which those are.
[[nodiscard]] std::vector<int> spread_over_cores(std::vector<int> cpus, std::string const& folder);

// The CPUs this process may use, in that order.
[[nodiscard]] std::vector<int> usable_cores();

// Whether `wish` (auto, on, off) pins this many ranks. Throws usage_error for an impossible "on".
[[nodiscard]] bool shall_pin(std::string const& wish, int ranks);

// Binds the calling thread to one core.
void pin_to(int core);

}  // namespace perf
