// SPDX-License-Identifier: Apache-2.0
// all_reduce in the switch between GPUs, where there is one, else as any other: the same sums, from calls and
// from graphs, and no rank that waits for one which has gone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "gpu.hpp"
#include "graphs.cuh"

namespace gpu_test {

using namespace collx;

// A buffer of which every rank knows the sum: whole numbers of few bits.
template <class T>
class switched {
 public:
  template <class Transport>
  switched(communicator<Transport>& host, gpu_communicator& gpu, std::size_t count)
      : data(host, gpu, count), rank_(gpu.rank()), ranks_(gpu.size()) {}
  void fill() {
    std::vector<T> mine(data.size());
    for (std::size_t i = 0; i < mine.size(); ++i)
      mine[i] = static_cast<T>(static_cast<float>(i % 16) + static_cast<float>(rank_));
    buffer<T>::fill(data.data(), mine);
  }
  // After so many calls: all ranks have the same from the first one on.
  void check_sums(int calls, char const* what) const {
    std::vector<T> const got = buffer<T>::read(data.data(), data.size());
    auto const ranks = static_cast<float>(ranks_);
    for (std::size_t i = 0; i < got.size(); ++i) {
      float expected = ranks * static_cast<float>(i % 16) + ranks * (ranks - 1) / 2;
      for (int k = 1; k < calls; ++k) expected *= ranks;
      check(static_cast<float>(got[i]) == expected,
            std::string(what) + (data.in_switch() ? " in the switch" : " in place of one in the switch"));
    }
  }

  multicast_buffer<T> data;

 private:
  rank_t rank_, ranks_;
};

// What is asked of the switch.
struct switch_trial {
  bool must;      // fails if ranks with GPUs of their own do not take it
  bool has_late;  // the last rank has its numbers when the kernels of the others run already
};

template <class T, class Transport>
void try_switch(communicator<Transport>& host, gpu_communicator& gpu, stream const& s,
                switch_trial const& how) {
  int gpus = 0;
  require(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  for (std::size_t const count : {std::size_t{3}, std::size_t{30'000}}) {
    switched<T> one(host, gpu, count);
    if (how.must && gpu.size() > 1 && gpu.size() <= gpus)
      check(one.data.in_switch(), "the switch was not taken");
    auto const begin = [&] {
      one.fill();
      all_reduce_in_switch(gpu, one.data, on(s.id));
    };
    bool const is_late = how.has_late && gpu.rank() == gpu.size() - 1;
    if (!is_late) begin();
    if (how.has_late) barrier(host);
    if (is_late) begin();
    gpu.synchronize(on(s.id));
    one.check_sums(1, "all_reduce");
    barrier(host);
  }
}

// Two calls in a row, replayed.
template <class Transport>
void try_switch_graph(communicator<Transport>& host, gpu_communicator& gpu, stream const& s) {
  switched<float> one(host, gpu, 1000);
  one.fill();
  std::optional<captured_graph> replayed(std::in_place, s, [&] {
    for (int i = 0; i < 2; ++i) all_reduce_in_switch(gpu, one.data, on(s.id));
  });
  try_replays(host, gpu, s, replayed, 2, [&] { one.check_sums(4, "a graph of all_reduces"); });
}

// The last rank leaves by an exception while the kernels of the others wait for it: they are told.
template <class Transport>
void try_left_switch(communicator<Transport>& host, stream const& s) {
  if (host.size() == 1) return;
  gpu_communicator gpu(host);
  bool told = false;
  try {
    switched<float> one(host, gpu, 1000);
    if (gpu.rank() == gpu.size() - 1) throw std::runtime_error("leaves");
    all_reduce_in_switch(gpu, one.data, on(s.id));
    gpu.synchronize(on(s.id));
  } catch (error const& e) {
    told = e.code() == status::aborted;
  } catch (std::runtime_error const&) {
    told = gpu.rank() == gpu.size() - 1;
  }
  check(told, "that a rank has left before an all_reduce in the switch is not told");
  barrier(host);
}

// Groups and buffers are made while a stream is captured that waits for the legacy default stream: whoever
// used that one would end the capture.
template <class Transport>
void try_made_during_capture(communicator<Transport>& host) {
  cudaStream_t captured = nullptr;
  cudaGraph_t graph = nullptr;
  require(cudaStreamCreate(&captured), "cudaStreamCreate");
  barrier(host);
  require(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed), "begin of capture");
  gpu_communicator gpu(host);
  switched<float> const one(host, gpu, 1000);
  require(cudaStreamEndCapture(captured, &graph), "end of a capture during which a group was made");
  require(cudaGraphDestroy(graph), "cudaGraphDestroy");
  barrier(host);  // nobody ends a capture any more
  require(cudaStreamDestroy(captured), "cudaStreamDestroy");
}

}  // namespace gpu_test
