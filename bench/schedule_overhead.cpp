// SPDX-License-Identifier: Apache-2.0
// What it costs that a schedule is a function: all steps of one rank's ring all_reduce, evaluated
// lazily through step(), against the loop one would write by hand. Index arithmetic only.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "collx/algo/ring.hpp"
#include "perf/method.h"

namespace {

// Stands for what an executor would do with a step. It must depend on every field that matters,
// and cost the same in both forms.
class visitor {
 public:
  void operator()(collx::rank_t from, collx::rank_t to, std::int32_t chunk, bool reduce, bool store) {
    std::uint64_t const word =
        static_cast<std::uint64_t>(from + 1) << 40 | static_cast<std::uint64_t>(to + 1) << 20 |
        static_cast<std::uint64_t>(chunk) << 2 | (reduce ? 2U : 0U) | (store ? 1U : 0U);
    sum_ = (sum_ ^ word) * 0x9E3779B97F4A7C15U;
  }
  [[nodiscard]] std::uint64_t sum() const { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

[[gnu::noinline]] std::uint64_t lazily(collx::problem p) {
  using schedule = collx::algo::ring::all_reduce;
  visitor visit;
  for (std::int32_t s = 0; s < schedule::step_count(p); ++s) {
    collx::primitive const step = schedule::step(p, s);
    visit(step.from.empty() ? collx::no_rank : step.from.first,
          step.to.empty() ? collx::no_rank : step.to.first, step.operand.first, step.reduce, step.store);
  }
  return visit.sum();
}

[[gnu::noinline]] std::uint64_t by_hand(collx::problem p) {
  collx::rank_t const left = p.rank == 0 ? p.size - 1 : p.rank - 1;
  collx::rank_t const right = p.rank == p.size - 1 ? 0 : p.rank + 1;
  std::int32_t chunk = left;
  auto const previous = [&p](std::int32_t c) { return c == 0 ? p.size - 1 : c - 1; };
  visitor visit;
  visit(collx::no_rank, right, chunk, false, p.size == 1);
  for (std::int32_t s = 1; s < p.size; ++s) {
    chunk = previous(chunk);
    visit(left, right, chunk, true, s == p.size - 1);
  }
  for (std::int32_t s = p.size; s < 2 * p.size - 1; ++s) {
    chunk = previous(chunk);
    visit(left, s < 2 * p.size - 2 ? right : collx::no_rank, chunk, false, true);
  }
  return visit.sum();
}

// Nanoseconds per enumeration: median of batches of about 100 us.
template <class F>
double nanoseconds(F const& enumerate, collx::problem p) {
  constexpr int batches = 101;
  std::int64_t const calls = std::max<std::int64_t>(10, 50'000 / p.size);
  std::vector<double> samples;
  std::uint64_t volatile sink = 0;
  for (int b = 0; b < batches; ++b) {
    double const begin_us = method_now_us();
    for (std::int64_t i = 0; i < calls; ++i) sink = enumerate(p);
    samples.push_back((method_now_us() - begin_us) * 1e3 / static_cast<double>(calls));
  }
  (void)sink;
  std::sort(samples.begin(), samples.end());
  return samples[batches / 2];
}

}  // namespace

int main() {
  std::printf("# all steps of one rank of ring all_reduce; ns, median of 101 batches\n");
  std::printf("# %6s  %14s  %14s  %7s\n", "ranks", "lazy step()", "loop by hand", "ratio");
  for (collx::rank_t const size : {2, 3, 8, 64, 1024}) {
    collx::problem const p{size / 2, size, 0};
    if (lazily(p) != by_hand(p)) {
      std::fprintf(stderr, "schedule_overhead: the two forms differ for %d ranks; mend by_hand\n", size);
      return 1;
    }
    double const lazy_ns = nanoseconds(lazily, p), hand_ns = nanoseconds(by_hand, p);
    std::printf("  %6d  %14.1f  %14.1f  %7.2f\n", size, lazy_ns, hand_ns, lazy_ns / hand_ns);
  }
}
