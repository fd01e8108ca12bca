// SPDX-License-Identifier: Apache-2.0
// One rank per core, as the launchers of MPI do it.
#pragma once

#include <string>
#include <vector>

namespace perf {

// The cores this process may use, ascending.
[[nodiscard]] std::vector<int> usable_cores();

// Whether `wish` (auto, on, off) pins this many ranks. Throws usage_error for an impossible "on".
[[nodiscard]] bool shall_pin(std::string const& wish, int ranks);

// Binds the calling thread to one core.
void pin_to(int core);

}  // namespace perf
