// SPDX-License-Identifier: Apache-2.0
// What a group of GPUs leaves behind: at its end, where its ranks do not meet any more, where one of them
// captures, and where graphs run on several GPUs; when it is not made; and after calls that it has refused.
// And captures that are interleaved.
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "gpu.hpp"
#include "rings/rings.cuh"
#include "watched.hpp"

namespace {

using namespace collx;
using gpu_test::buffer, gpu_test::check, gpu_test::error_of, gpu_test::require, gpu_test::stream;

constexpr std::uint64_t patience_us = 3'000'000;  // of a kernel

[[nodiscard]] gpu_settings small() {
  gpu_settings chosen = gpu_settings::from_environment();
  chosen.lanes = 2, chosen.staging_bytes = 8192, chosen.timeout_us = patience_us;
  return chosen;
}

[[nodiscard]] std::vector<float> ones(std::size_t count, float value = 1.0f) {
  return std::vector<float>(count, value);
}

void pause(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

// In one process: rank 1 ends its group when the ranks cannot meet any more, and rank 0 makes another call,
// whose kernel looks at the window of rank 1. `throws`: because of an exception, which ends the others'
// waits.
void end_without_meeting(bool throws) {
  transport::settings how = transport::settings::from_environment();
  how.timeout_us = 3'000'000;  // making a group included
  std::atomic<bool> is_gone{false};
  watched::on_threads(
      2,
      [&](auto& host) {
        gpu_test::arena memory(1 << 20);
        stream const s;
        buffer<float> data(ones(1000));
        std::optional<gpu_communicator> gpu(std::in_place, host, small());
        auto const call = [&] {
          all_reduce<algo::ring>(*gpu, data, sum, on(s.id));
          gpu->synchronize(on(s.id));
        };
        call();
        barrier(host);
        if (host.rank() == 1) {
          struct at_the_end {
            std::optional<gpu_communicator>& group;
            ~at_the_end() { group.reset(); }
          };
          try {
            at_the_end const last{gpu};
            if (throws) throw std::runtime_error("of the program's own");
          } catch (std::runtime_error const&) {
          }
          is_gone.store(true);
          return;
        }
        while (!is_gone.load()) pause(10);
        for (int i = 0; i < 2; ++i) {
          auto const told = error_of(call);
          check(told.has_value(), "a call after a rank has left");
          check(told->code() == (throws ? status::aborted : status::timeout), told->what());
        }
        require(cudaStreamSynchronize(s.id), "after a call on a window whose rank has left");
        check(data.content().size() == 1000, "memory after that");
      },
      how);
}

// What is refused for lack of an event has not been put into a stream.
void refuse_requests() {
  watched::on_threads(2, [](auto& host) {
    gpu_test::arena memory(1 << 20);
    stream const s;
    buffer<float> data(ones(100)), other(ones(100));
    gpu_communicator gpu(host, small());
    auto often = persistent::all_reduce<algo::ring>(gpu, other, sum, on(s.id));
    std::vector<gpu_request> kept;
    for (int i = 0; i < 64; ++i)
      kept.push_back(start::all_reduce<algo::ring>(gpu, data, collx::max, on(s.id)));
    auto const no_request = error_of([&] { (void)start::all_reduce<algo::ring>(gpu, other, sum, on(s.id)); });
    check(no_request && no_request->code() == status::out_of_memory, "a request too many");
    gpu.synchronize(on(s.id));
    check(other.content() == ones(100), "a call was made that was refused");
    auto const no_start = error_of([&] { often.start(); });
    check(no_start && no_start->code() == status::out_of_memory, "a start too many");
    gpu.synchronize(on(s.id));
    check(other.content() == ones(100), "a start was made that was refused");
    kept.clear();
    often.start();
    gpu.synchronize(on(s.id));
    check(other.content() == ones(100, 2.0f), "a start after that");
    barrier(host);
  });
}

// Two captures at once, one of them of two streams, whose calls run in the order in which they were made.
void interleave_captures() {
  watched::on_threads(2, [](auto& host) {
    gpu_test::arena memory(1 << 20);
    stream const a, b, c;
    gpu_test::event fork, join;
    std::size_t const count = 8000;
    buffer<float> x(ones(count)), y(ones(count)), z(ones(count));
    gpu_communicator gpu(host, small());
    cudaGraph_t graph = nullptr, other = nullptr;
    cudaGraphExec_t ready = nullptr;
    require(cudaStreamBeginCapture(a.id, cudaStreamCaptureModeThreadLocal), "begin");
    require(cudaStreamBeginCapture(b.id, cudaStreamCaptureModeThreadLocal), "begin");
    require(cudaEventRecord(fork.id, a.id), "fork");
    require(cudaStreamWaitEvent(c.id, fork.id, 0), "fork");
    all_reduce<algo::ring>(gpu, x, sum, on(a.id));
    all_reduce<algo::ring>(gpu, y, sum, on(b.id));
    all_reduce<algo::ring>(gpu, z, sum, on(c.id));
    require(cudaEventRecord(join.id, c.id), "join");
    require(cudaStreamWaitEvent(a.id, join.id, 0), "join");
    require(cudaStreamEndCapture(a.id, &graph), "end");
    require(cudaStreamEndCapture(b.id, &other), "end");
    require(cudaGraphInstantiate(&ready, graph, 0), "instantiation");
    barrier(host);
    for (int i = 0; i < 2; ++i) {
      require(cudaGraphLaunch(ready, a.id), "launch");
      gpu.synchronize(on(a.id));
    }
    check(x.content() == ones(count, 4.0f) && z.content() == ones(count, 4.0f), "interleaved captures");
    barrier(host);
    require(cudaGraphExecDestroy(ready), "destroy");
    require(cudaGraphDestroy(graph), "destroy");
    require(cudaGraphDestroy(other), "destroy");
  });
}

// Ranks on GPUs of their own: a graph runs when its group ends.
void end_while_graphs_run() {
  watched::on_threads(2, [](auto& host) {
    int devices = 0;
    require(cudaGetDeviceCount(&devices), "devices");
    if (devices < 2) return;
    require(cudaSetDevice(host.rank()), "device");
    gpu_test::arena memory(1 << 20);
    stream const s;
    buffer<float> data(ones(300, static_cast<float>(host.rank())));
    for (int round = 0; round < 8; ++round) {
      std::optional<gpu_communicator> gpu(std::in_place, host, small());
      gpu_test::captured_graph const graph(s, [&] {
        for (int i = 0; i < 5; ++i) all_reduce<algo::ring>(*gpu, data, collx::max, on(s.id));
      });
      barrier(host);
      graph.launch();
      gpu.reset();
      require(cudaStreamSynchronize(s.id), "a graph whose group has ended");
      barrier(host);
    }
    check(data.content() == ones(300), "graphs of groups that have ended");
  });
}

// Processes: rank 0 captures something else while the group ends, so that it cannot wait for its device, and
// closes nothing. (The emulated runtime complains of memory that is freed while another process has it open.)
int end_while_capturing(communicator<transport::shm>& host) {
  gpu_test::arena memory(1 << 20);
  stream const s, aside;
  buffer<float> data(ones(1000));
  {
    gpu_communicator gpu(host, small());
    all_reduce<algo::ring>(gpu, data, sum, on(s.id));
    gpu.synchronize(on(s.id));
    if (host.rank() == 0)
      require(cudaStreamBeginCapture(aside.id, cudaStreamCaptureModeThreadLocal), "begin");
  }
  cudaGraph_t graph = nullptr;
  if (host.rank() == 0 && cudaStreamEndCapture(aside.id, &graph) != cudaSuccess) (void)cudaGetLastError();
  if (graph != nullptr) require(cudaGraphDestroy(graph), "destroy");
  barrier(host);
  return 0;
}

// Processes whose handles cannot be opened (if the runtime is the emulated one), nor descriptors handed over
// in time: they give up.
int make_in_vain(communicator<transport::shm>& host) {
  (void)setenv("COLLX_EMULATED_CLOSED_HANDLES", "1", 1);
  gpu_settings chosen = small();
  chosen.timeout_us = 1;
  auto const told = error_of([&] { gpu_communicator const gpu(host, chosen); });
  if (told) std::printf("rank %d: %s\n", host.rank(), told->what());
  return 0;
}

// Processes whose handles cannot be opened, and a GPU that has room for one window of each, not two (if it is
// the emulated one): the first is given back before the second is made.
int fall_back_in_little_memory(communicator<transport::shm>& host) {
  (void)setenv("COLLX_EMULATED_CLOSED_HANDLES", "1", 1);
  (void)setenv("COLLX_EMULATED_MEMORY_MIB", "128", 1);
  gpu_settings chosen = small();
  chosen.heap_bytes = std::size_t{80} << 20;
  gpu_communicator const gpu(host, chosen);
  return 0;
}

}  // namespace

int main() {
  if (!gpu_test::may_begin()) return 0;
  int wrong = 0;
  for (auto const part : {&end_while_capturing, &make_in_vain, &fall_back_in_little_memory})
    for (int const code : watched::on_processes(2, part)) wrong += code != 0;
  try {
    for (bool const throws : {false, true}) end_without_meeting(throws);
    refuse_requests();
    interleave_captures();
    end_while_graphs_run();
  } catch (std::exception const& e) {
    std::printf("%s\n", e.what());
    ++wrong;
  }
  std::puts(wrong == 0 ? "what groups leave behind: ok" : "what groups leave behind: FAILED");
  return wrong == 0 ? 0 : 1;
}
