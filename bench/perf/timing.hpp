// SPDX-License-Identifier: Apache-2.0
// The method of method.h for the ranks of a communicator: warm-up, batches, the slowest rank's samples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "case.hpp"
#include "method.h"

namespace perf {

// Calls back to back, begun together; microseconds per call on this rank.
template <class World, class Call>
double run_batch(World& world, std::int64_t calls, method_rotation& turns, Call const& call_slot) {
  meet(world);
  double const begin_us = method_now_us();
  for (std::int64_t i = 0; i < calls; ++i) call_slot(method_next(&turns));
  return (method_now_us() - begin_us) / static_cast<double>(calls);
}

template <class World, class Call>
method_plan warm_up(World& world, job const& asked, method_rotation& turns, Call const& call_slot) {
  double call_us = run_batch(world, method_first_calls(asked.warmup, asked.bytes), turns, call_slot);
  slowest(world, std::span(&call_us, 1));
  method_plan const plan =
      method_make_plan(asked.bytes, turns.count, call_us, asked.iterations, asked.batches);
  run_batch(world, plan.warmup, turns, call_slot);
  return plan;
}

inline void keep(std::vector<double>& samples, method_plan const& plan, point& result) {
  std::sort(samples.begin(), samples.end());
  result.iterations = plan.iterations;
  result.batches = plan.batches;
  result.min_us = samples.front();
  result.median_us = method_percentile(samples.data(), plan.batches, 0.5);
  result.p99_us = method_percentile(samples.data(), plan.batches, 0.99);
}

template <class World, class Call>
void time_calls(World& world, job const& asked, point& result, Call const& call_slot) {
  method_rotation turns{result.buffers, 0};
  method_plan const plan = warm_up(world, asked, turns, call_slot);
  std::vector<double> samples(static_cast<std::size_t>(plan.batches));
  for (double& sample : samples) sample = run_batch(world, plan.iterations, turns, call_slot);
  slowest(world, std::span(samples));
  keep(samples, plan, result);
}

// write() puts a new input into the one buffer. The last thing done is a call.
template <class World, class Write, class Call>
void time_fresh_calls(World& world, job const& asked, point& result, Write const& write,
                      Call const& call_slot) {
  auto const only_write = [&](std::int64_t) { write(); };
  auto const write_and_call = [&](std::int64_t slot) { write(), call_slot(slot); };
  method_rotation turns{result.buffers, 0};
  method_plan const plan = warm_up(world, asked, turns, write_and_call);
  std::vector<double> writes(static_cast<std::size_t>(plan.batches)), samples(writes.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    only_write(0);
    writes[i] = run_batch(world, plan.iterations, turns, only_write);
    write_and_call(0);
    samples[i] = run_batch(world, plan.iterations, turns, write_and_call);
  }
  slowest(world, std::span(writes));
  slowest(world, std::span(samples));
  result.write_us = method_take_off_writes(samples.data(), writes.data(), plan.batches);
  keep(samples, plan, result);
}

}  // namespace perf
