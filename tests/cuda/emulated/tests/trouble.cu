// SPDX-License-Identifier: Apache-2.0
// Groups in trouble that a sound GPU with queues enough does not have: streams that share one queue, a GPU
// that has failed, a kernel of the user that fails.
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <collx/bootstrap/local.hpp>
#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "cuda/emulated/tests/expect.hpp"
#include "cuda/gpu.hpp"
#include "watched.hpp"

namespace {

using namespace collx;
using gpu_test::buffer, gpu_test::stream;

__global__ void store_at_null(int* null) { *null = 1; }

// Says what it threw.
template <class Call>
void ends_with(status wanted, char const* text, Call const& call) {
  std::optional<error> thrown;
  try {
    call();
  } catch (error const& e) {
    thrown = e;
  }
  bool const fits =
      thrown && thrown->code() == wanted && std::string(thrown->what()).find(text) != std::string::npos;
  if (!fits) std::fprintf(stderr, "%s: %s\n", name(wanted), thrown ? thrown->what() : "nothing was thrown");
  expect(fits, text);
}

[[nodiscard]] gpu_settings patient_for(std::uint64_t timeout_us) {
  gpu_settings chosen = gpu_settings::from_environment();
  chosen.timeout_us = timeout_us;
  return chosen;
}

// Behind the kernel that waits for a rank, in the only queue there is, stands the note of its end: what
// ends the kernel must not stand behind that.
void abort_with_one_queue() {
  (void)setenv("COLLX_EMULATED_QUEUES", "1", 1);
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  watched::on_threads(2, [](auto& host) {
    gpu_test::arena memory(1 << 20);
    stream const s;
    buffer<float> data(std::vector<float>(1000, 1.0f));
    gpu_communicator gpu(host, patient_for(3'000'000));
    if (gpu.rank() == 1) all_reduce(gpu, data, sum, on(s.id));
    barrier(host);
    if (gpu.rank() == 0) gpu.abort();
    else ends_with(status::aborted, "", [&] { gpu.synchronize(on(s.id)); });
    barrier(host);
  });
}

// A thread that has chosen no device has the first one, which is of no use here.
void threads_without_a_device() {
  (void)setenv("COLLX_EMULATED_GPUS", "2", 1);
  store_at_null<<<1, 1>>>(nullptr);
  expect(cudaDeviceSynchronize(), cudaErrorIllegalAddress, "the first GPU has failed");
  watched::on_threads(2, [](auto& host) {
    good(cudaSetDevice(1), "cudaSetDevice");
    gpu_test::arena memory(1 << 20);
    stream const s;
    buffer<float> data(std::vector<float>(1000, 1.0f));
    gpu_communicator gpu(host, patient_for(3'000'000));
    auto done = start::all_reduce(gpu, data, sum, on(s.id));
    std::thread([&] { done.wait(); }).join();
    auto again = start::all_reduce(gpu, data, sum, on(s.id));
    std::thread([&] {
      while (!again.test()) {
      }
    }).join();
    expect(data.content() == std::vector<float>(1000, 4.0f), "waited for by other threads");
    if (gpu.rank() == 1) all_reduce(gpu, data, sum, on(s.id));
    barrier(host);
    if (gpu.rank() == 0) std::thread([&] { gpu.abort(); }).join();
    else ends_with(status::aborted, "", [&] { gpu.synchronize(on(s.id)); });
    barrier(host);
  });
}

// Whether anybody has made a context on the first GPU.
[[nodiscard]] bool first_is_in_use() {
  PFN_cuDevicePrimaryCtxGetState_v7000 state = nullptr;
  unsigned flags = 0;
  int active = -1;
  good(transport::cuda_parts::find_entry_point("cuDevicePrimaryCtxGetState", 7000, state), "an entry point");
  expect(state(0, &flags, &active) == CUDA_SUCCESS, "the state of the first GPU");
  return active != 0;
}

// Nor does what they ask for make them take memory of the first one, as all processes of a job would then.
void first_device_is_left_alone() {
  (void)setenv("COLLX_EMULATED_GPUS", "2", 1);
  watched::on_threads(1, [](auto& host) {
    good(cudaSetDevice(1), "cudaSetDevice");
    gpu_test::arena memory(1 << 20);
    stream const s;
    buffer<float> data(std::vector<float>(1000, 1.0f));
    std::optional<gpu_communicator> gpu(std::in_place, host, patient_for(3'000'000));
    auto done = start::all_reduce(*gpu, data, sum, on(s.id));
    std::thread([&] {
      done.wait();
      int device = -1;
      good(cudaGetDevice(&device), "the thread's device");
      expect(device == 0, "a thread's device is what it was");
    }).join();
    std::thread([&] { gpu.reset(); }).join();
    expect(!first_is_in_use(), "nobody has used the first GPU");
  });
}

// The user's own error, by CUDA's name for it; the other rank, whose GPU is sound, waits no longer than it
// has to.
void kernel_that_fails_before() {
  (void)setenv("COLLX_EMULATED_GPUS", "2", 1);
  watched::on_threads(2, [](auto& host) {
    good(cudaSetDevice(host.rank()), "cudaSetDevice");
    gpu_test::arena memory(1 << 20);
    stream const s;
    buffer<float> data(std::vector<float>(1000, 1.0f));
    gpu_communicator gpu(host, patient_for(3'000'000));
    auto const call = [&] {
      all_reduce(gpu, data, sum, on(s.id));
      gpu.synchronize(on(s.id));
    };
    if (gpu.rank() == 0) {
      store_at_null<<<1, 1, 0, s.id>>>(nullptr);
      ends_with(status::system_failure, "cudaErrorIllegalAddress", call);
    } else {
      ends_with(status::timeout, "peer 0", call);
    }
    barrier(host);
  });
}

}  // namespace

int main() {
  (void)setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  in_a_child(abort_with_one_queue, "an abort with one queue");
  in_a_child(threads_without_a_device, "threads that have not chosen a device");
  in_a_child(first_device_is_left_alone, "threads that leave the first GPU alone");
  in_a_child(kernel_that_fails_before, "a kernel that fails before a collective");
  std::puts("groups in trouble: ok");
}
