// SPDX-License-Identifier: Apache-2.0
// The parameters of the cost models, from measured times: least squares of the relative error, with no
// parameter below zero.
#pragma once

#include "collx/tune/table.hpp"
#include "grid.hpp"

namespace tuning {

// How far a model is off, as a part of the measured time.
struct error_of_model {
  double median = 0, ninetieth_percentile = 0;
};

struct fit {
  std::string transport, memory;
  collx::tune::alpha_beta_gamma hockney;
  collx::tune::log_gp loggp;
  error_of_model hockney_error, loggp_error;
  std::size_t points = 0;
};

// One fit for each kind of memory on each transport.
[[nodiscard]] std::vector<fit> fit_models(results const& measured);

// The memory kind of that name.
[[nodiscard]] collx::tune::memory_kind memory_of(std::string const& name);

}  // namespace tuning
