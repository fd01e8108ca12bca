// SPDX-License-Identifier: Apache-2.0
// What `extern template` costs a call over the fully static form: an all_reduce of 8 bytes, both ways in
// turns, on one rank (nothing but the call) and on two processes (a call as it is).
#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "../perf/method.h"
#include "calls.hpp"
#include "collx/bootstrap/processes.hpp"

namespace {

template <class Op>
[[gnu::noinline]] double batch_ns(communicator& world, std::span<float> values, Op op, int calls) {
  double const begin_us = method_now_us();
  for (int i = 0; i < calls; ++i) collx::all_reduce(world, values, op);
  return (method_now_us() - begin_us) * 1e3 / calls;
}

double median(std::vector<double>& samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

void compare(communicator& world) {
  constexpr int batches = 201;
  int const calls = world.size() == 1 ? 20'000 : 2'000;
  std::vector<float> values(2);
  std::vector<double> here, elsewhere, difference;
  for (int b = -10; b < batches; ++b) {
    double const first = batch_ns(world, values, collx::sum, calls);
    double const second = batch_ns(world, values, sum_elsewhere{}, calls);
    if (b < 0) continue;  // warms up
    here.push_back(first);
    elsewhere.push_back(second);
    difference.push_back(second - first);
  }
  if (world.rank() != 0) return;
  double const static_ns = median(here), extern_ns = median(elsewhere);
  std::printf("  %6d  %12.1f  %16.1f  %18.1f\n", world.size(), static_ns, extern_ns, median(difference));
}

}  // namespace

int main() {
  std::printf("# all_reduce of 8 bytes over shm; ns per call, medians of 201 batches that take turns\n");
  std::printf("# %6s  %12s  %16s  %18s\n", "ranks", "static", "extern template", "median difference");
  std::fflush(stdout);
  for (collx::rank_t const size : {1, 2})
    for (int const code : collx::bootstrap::on_processes(size, compare))
      if (code != 0) return 1;
}
