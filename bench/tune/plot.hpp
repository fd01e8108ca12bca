// SPDX-License-Identifier: Apache-2.0
// The crossovers as a picture: one panel per collective, one line per algorithm, the chosen ones below.
#pragma once

#include "table.hpp"

namespace tuning {

// SVG of everything measured in one setting.
[[nodiscard]] std::string plot_of(results const& measured, std::vector<entry> const& table,
                                  setting const& where);

}  // namespace tuning
