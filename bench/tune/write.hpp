// SPDX-License-Identifier: Apache-2.0
// The files that collx_tune leaves: the table as JSON and as a C++ header.
#pragma once

#include "fit.hpp"
#include "table.hpp"

namespace tuning {

[[nodiscard]] std::string json_of(std::vector<entry> const& table, std::vector<fit> const& fits);
[[nodiscard]] std::string header_of(std::vector<entry> const& table, std::string const& name);

// Throws perf::usage_error.
void write_file(std::string const& path, std::string const& text);

}  // namespace tuning
