// SPDX-License-Identifier: Apache-2.0
// What was measured, as lines of JSON in a file: written at once, so that a run may end at any time and
// another go on.
#pragma once

#include <cstdio>
#include <limits>
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

  // Of the rounds before that one. A time is the median over rounds of the time relative to that of the
  // round: in one round all ranks are slower than in another, wherever the system has put them, and that is
  // no merit of those that were measured in the other. What a round takes is the geometric mean of the
  // algorithms that were in all of them; its median makes a time of it again.
  [[nodiscard]] results summary(int before = std::numeric_limits<int>::max()) const;

 private:
  void read_line(std::string const& line);

  std::string path_;
  std::map<item, double> us_;
};

}  // namespace tuning
