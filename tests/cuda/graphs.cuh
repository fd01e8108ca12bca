// SPDX-License-Identifier: Apache-2.0
// Collectives that are captured and replayed.
#pragma once

#include <optional>
#include <vector>

#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "gpu.hpp"

namespace gpu_test {

using namespace collx;

// Replays a graph so often, looks at what has come of it, and destroys it when all have.
template <class Transport, class Look>
void try_replays(communicator<Transport>& host, gpu_communicator& gpu, stream const& s,
                 std::optional<captured_graph>& replayed, int times, Look const& look) {
  barrier(host);  // nobody's kernel waits while another rank still makes its graph
  for (int i = 0; i < times; ++i) replayed->launch();
  gpu.synchronize(on(s.id));
  look();
  barrier(host);
  replayed.reset();
  barrier(host);  // the same of one that destroys its own
}

// What so many ranks make of a one by so many sums.
[[nodiscard]] inline float power(rank_t size, int sums) {
  float value = 1;
  for (int i = 0; i < sums; ++i) value *= static_cast<float>(size);
  return value;
}

template <class Transport>
void try_graph(communicator<Transport>& host, gpu_communicator& gpu, stream const& s) {
  std::vector<float> ones(1000, 1.0f);
  buffer<float> data(ones);
  std::optional<captured_graph> replayed(std::in_place, s, [&] { all_reduce(gpu, data, sum, on(s.id)); });
  try_replays(host, gpu, s, replayed, 3,
              [&] { check(data.content() == std::vector<float>(1000, power(gpu.size(), 3)), "graph"); });
}

// Calls of one capture that lie in two of its streams, of which neither waits for the other: they run in the
// order in which they were made all the same.
template <class Transport>
void try_graph_of_two_streams(communicator<Transport>& host, gpu_communicator& gpu, stream const& s,
                              stream const& other) {
  buffer<float> data(std::vector<float>(20'000, 1.0f));
  barrier(host);  // nobody's kernels wait while events are made
  event const forked, joined;
  std::optional<captured_graph> replayed(std::in_place, s, [&] {
    require(cudaEventRecord(forked.id, s.id), "the fork");
    require(cudaStreamWaitEvent(other.id, forked.id, 0), "the fork");
    for (int i = 0; i < 5; ++i) all_reduce(gpu, data, sum, on(i % 2 == 0 ? s.id : other.id));
    require(cudaEventRecord(joined.id, other.id), "the join");
    require(cudaStreamWaitEvent(s.id, joined.id, 0), "the join");
  });
  try_replays(host, gpu, s, replayed, 2, [&] {
    check(data.content() == std::vector<float>(20'000, power(gpu.size(), 10)),
          "a graph of calls in two streams");
  });
}

}  // namespace gpu_test
