// SPDX-License-Identifier: Apache-2.0
// Collectives on a GPU that are misused, refused or aborted: every rank has to be told, and nobody to wait.
#pragma once

#include <stdexcept>
#include <string>

#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "gpu.hpp"

namespace gpu_test {

using namespace collx;

template <class Call>
void expect_refusal(char const* what, Call const& call) {
  try {
    call();
  } catch (error const& e) {
    check(e.code() == status::bad_argument, std::string(what) + ": " + e.what());
    return;
  }
  throw std::runtime_error(std::string(what) + " was not refused");
}

// A group that one rank has ended: every rank hears of it with its next call, which does nothing.
template <class Transport>
void try_abort(communicator<Transport>& host, stream const& s) {
  gpu_communicator gpu(host);
  buffer<float> data(std::vector<float>(1000, 1.0f));
  barrier(host);
  if (gpu.rank() == 0) gpu.abort();
  barrier(host);
  bool told = false;
  try {
    all_reduce(gpu, data, sum, on(s.id));
    gpu.synchronize(on(s.id));
  } catch (error const& e) {
    told = e.code() == status::aborted;
  }
  check(told, "a call of a group that was aborted is not told so");
  check(data.content() == std::vector<float>(1000, 1.0f), "a call of a group that was aborted did something");
}

// A call without elements counts; so who leaves out a call that way is told, and the others are.
template <class Transport>
void try_left_out_call(communicator<Transport>& host, stream const& s) {
  gpu_communicator gpu(host);
  buffer<float> data(std::vector<float>(1000, 1.0f));
  std::span<float> const all(data.data(), 1000), none;
  barrier(host);
  all_reduce(gpu, none, sum, on(s.id));
  all_reduce(gpu, all, collx::max, on(s.id));
  gpu.synchronize(on(s.id));
  check(data.content() == std::vector<float>(1000, 1.0f), "a call behind one without elements");
  barrier(host);
  if (gpu.size() == 1) return;
  bool told = false;
  try {
    all_reduce(gpu, gpu.rank() == 0 ? none : all, sum, on(s.id));
    all_reduce(gpu, all, sum, on(s.id));
    gpu.synchronize(on(s.id));
  } catch (error const& e) {
    told = e.code() == status::mismatch || e.code() == status::aborted;
  }
  check(told, "a rank that left a call out is not told so");
  barrier(host);
}

// Memory that all ranks register is used in place, and what cannot be is refused on all of them.
template <class Transport>
void try_registered(communicator<Transport>& host, gpu_communicator& gpu, stream const& s) {
  std::size_t const count = 100'000;
  buffer<float> data(std::vector<float>(count, 1.0f)), other(std::vector<float>(count, 0.0f));
  auto const place = transport::cuda_parts::kinds_of_this_process().find(data.data(), 1).place;
  cudaIpcMemHandle_t any;
  if (!gpu.is_one_process() &&
      cudaIpcGetMemHandle(&any, reinterpret_cast<void*>(place.base)) != cudaSuccess) {
    std::printf("no handles of CUDA IPC: %s\n", cudaGetErrorString(cudaGetLastError()));
    return;
  }
  try {
    memory_registration const tried = gpu.register_memory(std::span(data.data(), count));
  } catch (error const& e) {  // on all ranks
    if (e.code() != status::system_failure || gpu.is_one_process()) throw;
    std::printf("handles of CUDA IPC are given and cannot be opened: %s\n", e.what());
    return;
  }
  auto const expected = static_cast<float>(gpu.size());
  for (int again = 0; again < 2; ++again) {
    memory_registration const in = gpu.register_memory(std::span(data.data(), count));
    memory_registration const out = gpu.register_memory(std::span(other.data() + 16, count - 16));
    all_reduce<algo::direct_two_shot>(gpu, std::span<float const>(data.data(), count - 16),
                                      std::span(other.data() + 16, count - 16), sum, on(s.id));
    all_reduce<algo::ring>(gpu, std::span(other.data() + 16, count - 16), sum, on(s.id));
    gpu.synchronize(on(s.id));
    std::vector<float> const got = other.content();
    check(std::vector<float>(got.begin() + 16, got.end()) ==
              std::vector<float>(count - 16, expected * expected),
          "all_reduce of registered memory");
  }
  std::vector<float> of_the_host(100);
  std::span<float> const mine =
      gpu.rank() == gpu.size() - 1 ? std::span<float>(of_the_host) : std::span<float>(data.data(), 100);
  expect_refusal("to register memory of the host", [&] { (void)gpu.register_memory(mine); });
  barrier(host);
}

// What is wrong with one rank's part is told to all, before anybody waits for it.
template <class Transport>
void try_refused_together(communicator<Transport>& host, gpu_communicator& gpu, stream const& s) {
  std::vector<float> of_the_host(100);
  buffer<float> good(of_the_host);
  std::span<float> const mine =
      gpu.rank() == gpu.size() - 1 ? std::span<float>(of_the_host) : std::span<float>(good.data(), 100);
  expect_refusal("one rank's memory of the host in a persistent call",
                 [&] { (void)persistent::all_reduce(gpu, mine, sum, on(s.id)); });
  gpu_settings chosen = gpu_settings::from_environment();
  if (host.rank() == 0) chosen.lanes = 0;
  expect_refusal("one rank's settings", [&] { gpu_communicator const refused(host, chosen); });
}

// Of a stream that is captured; the capture goes on.
template <class Call>
void expect_refusal_of_captured(char const* what, stream const& s, Call const& call) {
  cudaGraph_t graph = nullptr;
  require(cudaStreamBeginCapture(s.id, cudaStreamCaptureModeThreadLocal), "begin of capture");
  expect_refusal((std::string(what) + " in a stream that is captured").c_str(), call);
  require(cudaStreamEndCapture(s.id, &graph), "end of capture");
  require(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

// `call(on)`, of a group whose device is `gpu.device()`: in streams, and with devices, that are none of its.
template <class Gpu, class Call>
void try_wrong_streams(Gpu const& gpu, Call const& call, bool shares_device) {
  if (shares_device) {
    expect_refusal("the default stream of a GPU that ranks share", [&] { call(on(nullptr)); });
    expect_refusal("a thread's default stream there", [&] { call(on(cudaStreamPerThread)); });
    cudaStream_t blocking = nullptr;
    require(cudaStreamCreate(&blocking), "cudaStreamCreate");
    expect_refusal("a stream there that waits for others", [&] { call(on(blocking)); });
    require(cudaStreamDestroy(blocking), "cudaStreamDestroy");
  }
  int devices = 0;
  require(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  if (devices == 1) return;
  require(cudaSetDevice((gpu.device() + 1) % devices), "cudaSetDevice");
  stream const of_another;
  expect_refusal("another device that is current", [&] { call(on(of_another.id)); });
  require(cudaSetDevice(gpu.device()), "cudaSetDevice");
  expect_refusal("a stream of another device", [&] { call(on(of_another.id)); });
}

template <class Transport>
void try_misuse(communicator<Transport>& host, gpu_communicator& gpu, stream const& s) {
  std::vector<float> of_the_host(100);
  buffer<float> good(of_the_host);
  expect_refusal("memory of the host", [&] { all_reduce(gpu, of_the_host, sum, on(s.id)); });
  expect_refusal("input of the host", [&] { all_reduce(gpu, of_the_host, good, sum, on(s.id)); });
  expect_refusal("output of the host", [&] { all_reduce(gpu, good, of_the_host, sum, on(s.id)); });
  barrier(host);
  // One rank alone: another one's memory could come to lie there.
  if (gpu.rank() == 0) {
    void* freed = nullptr;
    require(cudaMalloc(&freed, 1 << 22), "cudaMalloc");
    require(cudaFree(freed), "cudaFree");
    std::span<float> const gone(static_cast<float*>(freed), 100);
    expect_refusal("freed memory", [&] { all_reduce(gpu, gone, sum, on(s.id)); });
  }
  barrier(host);
  std::span<float> const too_long(good.data(), std::size_t{1} << 40);
  expect_refusal("memory that ends too soon", [&] { all_reduce(gpu, too_long, sum, on(s.id)); });
  auto* const askew = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(good.data()) + 1);
  expect_refusal("memory between elements",
                 [&] { all_reduce(gpu, std::span<float>(askew, 50), sum, on(s.id)); });
  std::span<float> const too_short(good.data(), 99);  // whatever the number of ranks
  expect_refusal("a wrong count", [&] { all_gather(gpu, good, too_short, on(s.id)); });
  try_wrong_streams(
      gpu, [&](on where) { all_reduce(gpu, good, sum, where); }, gpu.shares_device());
  expect_refusal_of_captured("start::", s, [&] { (void)start::all_reduce(gpu, good, sum, on(s.id)); });
  auto often = persistent::all_reduce(gpu, good, sum, on(s.id));
  expect_refusal_of_captured("persistent::", s, [&] { often.start(); });
  barrier(host);  // nobody's kernel waits while a rank makes or destroys what may wait for it
  all_reduce(gpu, good, sum, on(s.id));  // nothing of this has done harm
  gpu.synchronize(on(s.id));
  barrier(host);
}

// The same of calls that the host drives, and of their reductions on the GPU.
template <class Transport>
void try_host_driven_misuse(communicator<Transport>& host, stream const& s) {
  std::vector<float> of_the_host(100);
  buffer<float> good(std::vector<float>(100, 1.0f)), out(of_the_host), room(of_the_host);
  transport::cuda_parts::copy_engine copies(1 << 16);
  barrier(host);
  {
    gpu_driven_by_host<Transport> gpu(host, copies);
    expect_refusal("host-driven: memory of the host", [&] { all_reduce(gpu, of_the_host, sum, on(s.id)); });
    expect_refusal("host-driven: input of the host",
                   [&] { all_reduce(gpu, of_the_host, good, sum, on(s.id)); });
    expect_refusal("host-driven: output of the host",
                   [&] { all_reduce(gpu, good, of_the_host, sum, on(s.id)); });
    expect_refusal("host-driven: a workspace of the host",
                   [&] { reduce_on_device::all_reduce(gpu, good, out, of_the_host, sum, on(s.id)); });
    auto const call = [&](on where) { all_reduce(gpu, good, sum, where); };
    auto const adds = [&](on where) { reduce_on_device::all_reduce(gpu, good, out, room, sum, where); };
    try_wrong_streams(gpu.copies(), call, gpu.shares_device());
    try_wrong_streams(gpu.copies(), adds, gpu.shares_device());
    expect_refusal_of_captured("host-driven", s, [&] { call(on(s.id)); });
    expect_refusal_of_captured("host-driven, added up by the GPU", s, [&] { adds(on(s.id)); });
  }
  barrier(host);  // nobody's stream waits while a rank makes or destroys what may wait for it
  {
    gpu_driven_by_host<Transport> gpu(host, copies);  // nothing of this has done harm
    all_reduce(gpu, good, sum, on(s.id));
    require(cudaStreamSynchronize(s.id), "cudaStreamSynchronize");
    gpu.throw_if_failed();
    check(good.content() == std::vector<float>(100, static_cast<float>(host.size())), "behind refused calls");
  }
  barrier(host);
}

}  // namespace gpu_test
