// SPDX-License-Identifier: Apache-2.0
// What a run prints: one progress line, the communication table and the comparison with one rank.
// Only rank 0 calls this.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include <unistd.h>

#include "options.hpp"

namespace train_digits {

// 19240 -> "19,240"
[[nodiscard]] inline std::string grouped(std::size_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

inline void print_opening(options const& o, digits const& data, int ranks, char const* over, char const* sum,
                          std::size_t gradient_bytes) {
  std::printf("train_digits: %s training and %s test images, network %d-%d-%d with %s parameters\n",
              grouped(data.training.size()).c_str(), grouped(data.test.size()).c_str(), pixel_count,
              hidden_count, class_count, grouped(parameter_count).c_str());
  std::printf(
      "%d %s over %s, batch %zu, seed %llu; gradients: all_reduce<%s>, %s sum, %s bytes\n\n",
      ranks, ranks == 1 ? "process" : "processes", over, o.training.batch,
      static_cast<unsigned long long>(o.training.seed), o.algorithm.c_str(), sum,
      grouped(gradient_bytes).c_str());
}

// On a terminal one line that is written over; otherwise a line for every tenth of the run.
class progress_line {
 public:
  explicit progress_line(int epochs) : epochs_(epochs), terminal_(isatty(STDOUT_FILENO) == 1) {}

  void show(epoch_result const& r) {
    bool const last = r.epoch == epochs_;
    bool const tenth = r.epoch * 10 / epochs_ != (r.epoch - 1) * 10 / epochs_;
    if (!terminal_ && !tenth) return;
    std::printf("%sepoch %*d/%d  loss %.4f  test accuracy %.2f %%%s", terminal_ ? "\r" : "", width(), r.epoch,
                epochs_, r.loss, 100.0 * r.accuracy, terminal_ && !last ? "\033[K" : "\n");
    std::fflush(stdout);
  }

 private:
  [[nodiscard]] int width() const { return static_cast<int>(std::to_string(epochs_).size()); }

  int epochs_;
  bool terminal_;
};

// The mean time of a step, of which rank 0 computes for one part and is in all_reduce for the other.
struct step_time {
  explicit step_time(measurements const& m)
      : compute_us(m.compute.total_us() / static_cast<double>(m.compute.count())),
        communication_us(m.gradient.time.total_us() / static_cast<double>(m.compute.count())) {}
  [[nodiscard]] double us() const { return compute_us + communication_us; }

  double compute_us;
  double communication_us;
};

inline void print_step_time(measurements const& m) {
  step_time const t(m);
  std::printf("\ntime per step: %.1f us = compute %.1f us + communication %.1f us (mean of %s steps)\n\n",
              t.us(), t.compute_us, t.communication_us, grouped(m.compute.count()).c_str());
}

// Time in a call includes waiting for the slowest rank to arrive: that is what a step pays.
inline void print_communication(measurements const& m) {
  std::printf("%-11s %-18s %10s %7s %8s %10s %9s %13s\n", "collective", "what", "bytes", "calls", "min us",
              "median us", "p99 us", "share of run");
  for (call_log const* log : m.calls())
    std::printf("%-11s %-18s %10s %7s %8.1f %10.1f %9.1f %11.1f %%\n", log->collective, log->payload,
                grouped(log->bytes).c_str(), grouped(log->time.count()).c_str(), log->time.quantile_us(0.0),
                log->time.quantile_us(0.5), log->time.quantile_us(0.99),
                100.0 * log->time.total_us() / m.whole_us);
  std::printf("(rank 0; the time of a call includes waiting for the last rank to arrive)\n\n");
}

struct comparison {
  bool equal_bits = false;
  double largest_difference = 0.0;  // of one parameter
  double relative_distance = 0.0;   // of the whole vectors: |a - b| / |b|
};

[[nodiscard]] inline comparison compare(std::vector<float> const& a, std::vector<float> const& b) {
  comparison c;
  c.equal_bits = std::memcmp(a.data(), b.data(), parameter_count * sizeof(float)) == 0;
  double difference_squared = 0.0;
  double length_squared = 0.0;
  for (std::size_t i = 0; i < parameter_count; ++i) {
    double const difference = std::fabs(double{a[i]} - double{b[i]});
    c.largest_difference = std::fmax(c.largest_difference, difference);
    difference_squared += difference * difference;
    length_squared += double{b[i]} * double{b[i]};
  }
  c.relative_distance = std::sqrt(difference_squared / length_squared);
  return c;
}

// Float sums differ in their last bits. Mostly that stays at 1e-6; but where it decides on which side
// of zero a hidden unit falls, the two models part ways a little: 3e-3 of their length at most, measured
// with 2, 3 and 7 ranks and seeds 1 to 50. Anything well above that is not rounding.
inline constexpr double float_distance_max = 0.02;

// Prints the verdict; true if it is what the way of summing promises.
template <class Sum>
[[nodiscard]] bool print_comparison(outcome const& many, outcome const& one) {
  comparison const c = compare(many.parameters, one.parameters);
  bool const close = c.relative_distance <= float_distance_max;
  std::printf("%s sum promises: %s\n", Sum::name, Sum::promise);
  std::printf("same model on every rank: %s (fingerprint %016llx)\n", many.same_on_every_rank ? "yes" : "NO",
              static_cast<unsigned long long>(fingerprint(many.parameters)));
  std::printf("same model as 1 rank: ");
  if (c.equal_bits) std::printf("yes (bit for bit)\n");
  else
    std::printf("%s, a parameter differs by up to %.2g, the whole model by %.2g of its length%s\n",
                close && !Sum::same_for_any_rank_count ? "within rounding" : "NO", c.largest_difference,
                c.relative_distance, Sum::same_for_any_rank_count ? "" : "; --reproducible: by nothing");
  std::printf("time per step: %.1f us here, %.1f us with 1 rank\n", step_time(many.measured).us(),
              step_time(one.measured).us());
  return many.same_on_every_rank && (c.equal_bits || (!Sum::same_for_any_rank_count && close));
}

}  // namespace train_digits
