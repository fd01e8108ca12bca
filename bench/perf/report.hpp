// SPDX-License-Identifier: Apache-2.0
// What rank 0 prints: the table of nccl-tests (its columns first and in its order, so that scripts
// which read them keep working; ours follow), and the same points as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "case.hpp"
#include "options.hpp"

namespace perf {

// One line of the table: a size with one type, operator and algorithm, at both places.
struct row {
  job asked;
  std::string type;
  std::optional<point> out_of_place, in_place;
};

// What decides as much as code, and so stands above the figures.
struct surroundings {
  std::string pinned_to;
  std::string congestion;   // the control that TCP is under; empty where there is no TCP
  std::string single_copy;  // what the system copies between processes; empty where it could not
};

class report {
 public:
  report(options const& asked, surroundings where);

  void header() const;
  void add(row const& finished);  // prints it at once
  void footer() const;
  void write_json() const;

  [[nodiscard]] std::int64_t wrong() const { return wrong_; }

 private:
  void print_setting() const;
  void print_column_heads() const;

  options const& asked_;
  surroundings where_;
  std::vector<row> rows_;
  std::int64_t wrong_ = 0;
};

// Throws usage_error when the file of --json cannot be written: better said before the run.
void require_writable(std::string const& json_path);

// Bytes that each link must carry per byte of the vector, as nccl-tests defines bus bandwidth.
[[nodiscard]] double bus_factor(std::string const& collective, int ranks);

}  // namespace perf
