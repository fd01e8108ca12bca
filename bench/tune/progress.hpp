// SPDX-License-Identifier: Apache-2.0
// The progress bar: redrawn in place on a terminal, a line per tenth elsewhere.
#pragma once

#include <chrono>
#include <string>

namespace tuning {

class progress {
 public:
  explicit progress(std::size_t total) : total_(total) {}

  // More to do than was known.
  void expect(std::size_t more) { total_ += more; }
  // `count` of all are there from an earlier run.
  void skip(std::size_t count) { done_ += count, skipped_ += count; }
  // Counted here and by forked ranks alike: see measure.cpp.
  void count(std::size_t more);
  void step(std::string const& what);
  void finish() const;

  [[nodiscard]] double seconds() const;

 private:
  void draw(std::string const& what) const;
  [[nodiscard]] int tenths() const;

  std::size_t total_, done_ = 0, skipped_ = 0;
  int tenths_told_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace tuning
