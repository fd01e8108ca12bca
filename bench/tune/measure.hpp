// SPDX-License-Identifier: Apache-2.0
// Runs the measurements of one setting on ranks of its own.
#pragma once

#include "grid.hpp"
#include "progress.hpp"
#include "state.hpp"

namespace tuning {

enum class ending { finished, stopped_by_limit, failed };

// Measures what `known` does not have, and adds it there. `so_far` counts over all settings.
[[nodiscard]] ending measure(options const& o, setting const& where, state& known, progress& so_far);

}  // namespace tuning
