// SPDX-License-Identifier: Apache-2.0
// The progress bar: redrawn in place on a terminal, a line per tenth elsewhere.
#pragma once

#include <chrono>
#include <string>

namespace tuning {

class progress {
 public:
  // `total`: as much as there can be to do.
  explicit progress(std::size_t total) : total_(total) {}

  // So much of the total is not to be done after all. What has been told of the rest stays true: it grows.
  void spare(std::size_t count) { total_ -= count; }
  // `count` of all are there from an earlier run.
  void skip(std::size_t count) { done_ += count, skipped_ += count; }
  // Counted here and by forked ranks alike: see measure.cpp.
  void count(std::size_t more);
  void step(std::string const& what);
  void finish();

  [[nodiscard]] double seconds() const;

 private:
  void draw(std::string const& what) const;
  void tell(std::string const& where);
  [[nodiscard]] int tenths() const;

  std::size_t total_, done_ = 0, skipped_ = 0;
  int tenths_told_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace tuning
