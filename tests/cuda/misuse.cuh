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

template <class Transport>
void try_misuse(communicator<Transport>& host, gpu_communicator& gpu, stream const& s) {
  std::vector<float> of_the_host(100);
  buffer<float> good(of_the_host);
  expect_refusal("memory of the host", [&] { all_reduce(gpu, of_the_host, sum, on(s.id)); });
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
  all_reduce(gpu, good, sum, on(s.id));  // nothing of this has done harm
  gpu.synchronize(on(s.id));
}

}  // namespace gpu_test
