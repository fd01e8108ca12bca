// SPDX-License-Identifier: Apache-2.0
// What was measured, as lines of JSON in a file: written at once, so that a run may end at any time and
// another go on.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grid.hpp"

namespace tuning {

class state {
 public:
  // Reads what is there, or empties the file (`resume` false). Throws perf::usage_error.
  state(std::string path, bool resume);

  [[nodiscard]] bool has(item const& i) const { return us_.contains(i); }
  // Writes it before returning.
  void add(item const& i, double us);

  // What other processes have added since: ranks are forked.
  void read();

  [[nodiscard]] results summary() const;

 private:
  void read_line(std::string const& line);

  std::string path_;
  std::map<item, double> us_;
};

}  // namespace tuning
