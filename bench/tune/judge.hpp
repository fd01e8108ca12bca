// SPDX-License-Identifier: Apache-2.0
// How good choices are: at how many measured points the algorithm that a table or the cost model takes is
// within 10 % of the fastest one; where there is but one, nothing is counted. The choice is made by the
// library, as in a call.
#pragma once

#include "collx/tune/settings.hpp"
#include "grid.hpp"

namespace tuning {

// One way to choose, and how it did.
struct verdict {
  std::string name;
  std::size_t points = 0, within = 0;
  double worst = 1;  // time of the chosen one over that of the best
  std::string worst_at{};
};

// This table (with its models), the built-in one, and the cost model alone.
[[nodiscard]] std::vector<verdict> judge(results const& measured, collx::tune::settings const& said);

}  // namespace tuning
