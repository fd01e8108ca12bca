// SPDX-License-Identifier: Apache-2.0
// What a benchmark has to reach, in lines that scripts/gpu_check.sh puts into its table and judges:
// "RESULT name value <= limit", or ">=".
#pragma once

#include <cstdio>
#include <cstring>

namespace verdict {

// `name`: without spaces. `sign`: "<=" or ">=".
inline void tell(char const* name, double value, char const* sign, double limit) {
  std::printf("RESULT %s %.4f %s %.2f\n", name, value, sign, limit);
}

// Whether the first argument says that little is to be measured: that the program runs is all that an
// emulated GPU can show.
[[nodiscard]] inline bool is_small(int argc, char** argv) {
  return argc > 1 && std::strcmp(argv[1], "small") == 0;
}

}  // namespace verdict
