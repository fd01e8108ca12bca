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
#include <utility>
#include <vector>

#include "../perf/method.h"
#include "options.hpp"
#include "team.hpp"

namespace plain {

struct timing {
  double min_us = 0, median_us = 0, p99_us = 0;
  double write_us = 0;  // of fresh inputs: what writing one takes, which is in no figure above
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

inline void require_room(std::int64_t batches) {
  if (batches > team::samples_most)
    throw std::invalid_argument("--batches ends at " + std::to_string(team::samples_most));
}

// `batches` of them, behind one another.
template <class Call>
timing time_batches(team& ranks, std::int64_t iterations, std::int64_t batches, method_rotation& turns,
                    Call const& call) {
  require_room(batches);
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

// With fresh inputs: write() puts a new one into the one buffer. The last thing done is a call.
template <class Write, class Call>
timing time_fresh(team& ranks, options const& o, std::int64_t bytes, Write const& write, Call const& call) {
  auto const only_write = [&](std::int64_t) { write(); };
  auto const write_and_call = [&](std::int64_t slot) { write(), call(slot); };
  method_rotation turns{1, 0};
  method_plan const plan = warm_up(ranks, o, bytes, turns, write_and_call);
  require_room(plan.batches);
  std::vector<double> writes(static_cast<std::size_t>(plan.batches)), samples(writes.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    only_write(0);
    writes[i] = run_batch(ranks, plan.iterations, turns, only_write);
    write_and_call(0);
    samples[i] = run_batch(ranks, plan.iterations, turns, write_and_call);
  }
  ranks.slowest(writes);
  ranks.slowest(samples);
  double const write_us = method_take_off_writes(samples.data(), writes.data(), plan.batches);
  timing found = timing_of(std::move(samples));
  found.write_us = write_us;
  return found;
}

inline void print_point(options const& o, std::int64_t bytes, std::int64_t buffers, timing const& t,
                        std::int64_t wrong) {
  std::printf("{\"collective\": \"%s\", \"bytes\": %" PRId64
              ", \"ranks\": %d, \"in_place\": %s, \"buffers\": %" PRId64
              ", \"min_us\": %.4f, \"median_us\": %.4f, \"p99_us\": %.4f, \"wrong\": %" PRId64,
              o.collective.c_str(), bytes, o.ranks, o.in_place ? "true" : "false", buffers, t.min_us,
              t.median_us, t.p99_us, wrong);
  if (o.fresh) std::printf(", \"write_us\": %.4f", t.write_us);
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace plain
