// SPDX-License-Identifier: Apache-2.0
// What `extern template`, the type-erased communicator and a group cost over the fully static form: an
// all_reduce of 8 bytes, in all ways in turns, on one rank (nothing but the call) and on two processes (a
// call as it is).
#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "../perf/method.h"
#include "calls.hpp"
#include "collx/bootstrap/processes.hpp"
#include "collx/collective/group.hpp"
#include "collx/collective/split.hpp"

namespace {

constexpr int batches = 201;
constexpr std::size_t grouped = 16;

template <class Call>
[[gnu::noinline]] double batch_ns(int calls, Call const& call) {
  double const begin_us = method_now_us();
  for (int i = 0; i < calls; ++i) call();
  return (method_now_us() - begin_us) * 1e3 / calls;
}

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

// The first way, and how much longer than it each of the others takes.
template <class... Calls>
void print_row(communicator& world, int calls, char const* what, Calls const&... ways) {
  std::vector<double> samples[sizeof...(Calls)];
  for (int b = -10; b < batches; ++b) {
    double const now[] = {batch_ns(calls, ways)...};
    if (b < 0) continue;  // warms up
    samples[0].push_back(now[0]);
    for (std::size_t k = 1; k < sizeof...(Calls); ++k) samples[k].push_back(now[k] - now[0]);
  }
  if (world.rank() != 0) return;
  std::printf("  %6d  %-14s  %9.1f", world.size(), what, median(samples[0]));
  for (std::size_t k = 1; k < sizeof...(Calls); ++k) std::printf("  %+9.1f", median(samples[k]));
  std::printf("\n");
}

void compare(communicator& world) {
  int const calls = world.size() == 1 ? 20'000 : 2'000;
  std::vector<float> values(2);
  collx::any_communicator erased = make_erased(world.split(0, world.rank()));
  auto const erased_call = [&](collx::call_options const& options) {
    erased.all_reduce(values.data(), values.data(), values.size(), collx::data_type::float32,
                      collx::reduce_op::sum, options);
  };
  print_row(
      world, calls, "one", [&] { collx::all_reduce(world, values); },
      [&] { collx::all_reduce(world, values, sum_elsewhere{}); }, [&] { erased_call({}); },
      [&] { erased_call({.algorithm = "direct_one_shot"}); });
  std::vector<std::vector<float>> many(grouped, values);
  collx::group together(world, 4096);
  print_row(
      world, calls / 10, "16: apart, fused",
      [&] {
        for (auto& each : many) collx::all_reduce(world, each);
      },
      [&] {
        for (auto& each : many) together.all_reduce(each);
        together.run();
      });
}

}  // namespace

int main() {
  std::printf(
      "# all_reduce of 8 bytes over shm; ns per call, medians of %d batches that take turns: the static\n"
      "# form, and how much longer the others take\n",
      batches);
  std::printf("# %6s  %-14s  %9s  %9s  %9s  %9s\n", "ranks", "calls", "static", "extern", "any", "any, name");
  std::fflush(stdout);
  for (collx::rank_t const size : {1, 2})
    for (int const code : collx::bootstrap::on_processes(size, compare))
      if (code != 0) return 1;
}
