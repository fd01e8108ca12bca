// SPDX-License-Identifier: Apache-2.0
// From times to rules: few of them, each for an interval of sizes on which its algorithm is as good as
// the best.
#pragma once

#include <limits>

#include "grid.hpp"

namespace tuning {

// One row of the table that is written.
struct entry {
  setting where;  // memory "any": no condition
  std::string collective, algorithm;
  std::int64_t bytes_max = std::numeric_limits<std::int64_t>::max();  // none: the last of its kind
};

[[nodiscard]] std::vector<entry> table_of(results const& measured);

}  // namespace tuning
