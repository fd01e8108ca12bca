// SPDX-License-Identifier: Apache-2.0
// Where the time of a training run goes: every collective call of this rank and every step's
// computation, kept as samples so that a median and a tail can be told from them.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <vector>

namespace train_digits {

// Runs f and returns how long it took.
template <class F>
double timed_us(F&& f) {
  auto const begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

class samples {
 public:
  void add(double us) { us_.push_back(us); }
  [[nodiscard]] std::size_t count() const { return us_.size(); }

  [[nodiscard]] double total_us() const {
    double total = 0.0;
    for (double us : us_) total += us;
    return total;
  }

  // The value that `fraction` of the samples do not exceed; 0 without samples.
  [[nodiscard]] double quantile_us(double fraction) const {
    if (us_.empty()) return 0.0;
    std::vector<double> sorted = us_;
    auto const rank = static_cast<std::ptrdiff_t>(fraction * static_cast<double>(sorted.size() - 1) + 0.5);
    std::nth_element(sorted.begin(), sorted.begin() + rank, sorted.end());
    return sorted[static_cast<std::size_t>(rank)];
  }

 private:
  std::vector<double> us_;
};

// One row of the communication table.
struct call_log {
  char const* collective;
  char const* payload;
  std::size_t bytes = 0;  // of the vector in one call
  samples time{};

  template <class F>
  void record(std::size_t call_bytes, F&& call) {
    bytes = call_bytes;
    time.add(timed_us(call));
  }
};

struct measurements {
  call_log parameters{"broadcast", "first parameters"};
  call_log gradient{"all_reduce", "gradient and loss"};
  call_log answers{"all_reduce", "right answers"};
  call_log fingerprints{"all_gather", "fingerprints"};
  samples compute;        // of a step: gradient of this rank's images, and the update
  double whole_us = 0.0;  // the run from the first collective to the last

  [[nodiscard]] std::array<call_log const*, 4> calls() const {
    return {&parameters, &gradient, &answers, &fingerprints};
  }
};

}  // namespace train_digits
