// SPDX-License-Identifier: Apache-2.0
// The method of perf/method.h for a team of forked ranks: batches, the slowest rank's samples, a line of
// JSON per size as bench/compare reads it.
#pragma once

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../perf/method.h"
#include "options.hpp"
#include "team.hpp"

namespace plain {

struct timing {
  double min_us = 0, median_us = 0, p99_us = 0;
};

// Calls call(buffer) `calls` times; microseconds per call on this rank.
template <class Call>
double run_batch(team& ranks, std::int64_t calls, method_rotation& turns, Call const& call) {
  ranks.meet();
  double const begin_us = method_now_us();
  for (std::int64_t i = 0; i < calls; ++i) call(method_next(&turns));
  return (method_now_us() - begin_us) / static_cast<double>(calls);
}

[[nodiscard]] inline timing timing_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  auto const count = static_cast<std::int64_t>(samples.size());
  return {samples.front(), method_percentile(samples.data(), count, 0.5),
          method_percentile(samples.data(), count, 0.99)};
}

// `batches` of them, behind one another.
template <class Call>
timing time_batches(team& ranks, std::int64_t iterations, std::int64_t batches, method_rotation& turns,
                    Call const& call) {
  if (batches > team::samples_most)
    throw std::invalid_argument("--batches ends at " + std::to_string(team::samples_most));
  std::vector<double> samples(static_cast<std::size_t>(batches));
  for (double& sample : samples) sample = run_batch(ranks, iterations, turns, call);
  ranks.slowest(samples);
  return timing_of(samples);
}

// The plan for this size, after a first batch that says how long a call takes.
template <class Call>
method_plan warm_up(team& ranks, options const& o, std::int64_t bytes, method_rotation& turns,
                    Call const& call) {
  double call_us = run_batch(ranks, method_first_calls(o.warmup, bytes), turns, call);
  ranks.slowest(std::span(&call_us, 1));
  method_plan const plan = method_make_plan(bytes, turns.count, call_us, o.iterations, o.batches);
  run_batch(ranks, plan.warmup, turns, call);
  return plan;
}

inline void print_point(options const& o, std::int64_t bytes, std::int64_t buffers, timing const& t,
                        std::int64_t wrong) {
  std::printf("{\"collective\": \"%s\", \"bytes\": %" PRId64
              ", \"ranks\": %d, \"in_place\": %s, \"buffers\": %" PRId64
              ", \"min_us\": %.4f, \"median_us\": %.4f, \"p99_us\": %.4f, \"wrong\": %" PRId64 "}\n",
              o.collective.c_str(), bytes, o.ranks, o.in_place ? "true" : "false", buffers, t.min_us,
              t.median_us, t.p99_us, wrong);
  std::fflush(stdout);
}

}  // namespace plain
