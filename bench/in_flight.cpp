// SPDX-License-Identifier: Apache-2.0
// What several requests in flight are worth: started all_reduces on 2 processes, of which k are kept in
// flight, against one at a time. Whoever waits for the oldest moves all of them along.
#include <algorithm>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include "collx/bootstrap/processes.hpp"
#include "collx/collective/all_reduce.hpp"
#include "perf/method.h"

namespace {

using communicator = collx::communicator<collx::transport::shm>;
using request = collx::request<collx::transport::shm::endpoint>;

constexpr int windows[] = {1, 2, 4, 8};
constexpr int batches = 61;
constexpr std::size_t slots = 8;

// Every request in flight has vectors of its own; they are the same for every k, so that all use as much
// cache.
class buffers {
 public:
  explicit buffers(std::size_t count)
      : count_(count), in_(count * slots), out_(count * slots) {}

  [[nodiscard]] request start(communicator& world, int turn) {
    std::size_t const at = static_cast<std::size_t>(turn) % slots * count_;
    return collx::start::all_reduce(world, std::span<float const>(in_).subspan(at, count_),
                                    std::span(out_).subspan(at, count_));
  }

 private:
  std::size_t count_;
  std::vector<float> in_, out_;
};

// Microseconds per call with `window` requests in flight.
double batch_us(communicator& world, buffers& memory, int window, int calls) {
  std::vector<request> flying(static_cast<std::size_t>(window));
  double const begin_us = method_now_us();
  for (int i = 0; i < calls; ++i) {
    request& oldest = flying[static_cast<std::size_t>(i % window)];
    oldest.wait();
    oldest = memory.start(world, i);
  }
  for (int i = 0; i < window; ++i) flying[static_cast<std::size_t>((calls + i) % window)].wait();
  return (method_now_us() - begin_us) / calls;
}

void measure(communicator& world, std::size_t bytes) {
  buffers memory(bytes / sizeof(float));
  int const calls = bytes <= 4096 ? 400 : 40;
  std::vector<double> samples[std::size(windows)];
  for (int b = -5; b < batches; ++b)
    for (std::size_t w = 0; w < std::size(windows); ++w) {
      double const us = batch_us(world, memory, windows[w], calls);
      if (b >= 0) samples[w].push_back(us);
    }
  for (auto& each : samples) {
    collx::all_reduce(world, std::span(each), collx::max);
    std::sort(each.begin(), each.end());
  }
  if (world.rank() != 0) return;
  double const alone = samples[0][batches / 2];
  std::printf("  %8zu  %9.3f", bytes, alone);
  for (std::size_t w = 1; w < std::size(windows); ++w)
    std::printf("  %8.2f", alone / samples[w][batches / 2]);
  std::printf("\n");
}

}  // namespace

int main() {
  std::printf(
      "# started all_reduces on 2 processes: us per call with one in flight, and how many times as many\n"
      "# are done in the same time with more; medians of %d batches that take turns\n"
      "# %8s  %9s  %8s  %8s  %8s\n",
      batches, "bytes", "1", "2", "4", "8");
  std::fflush(stdout);
  for (int const code : collx::bootstrap::on_processes(2, [](communicator& world) {
         for (std::size_t const bytes : {8u, 4096u, 262'144u}) measure(world, bytes);
       }))
    if (code != 0) return 1;
}
