// SPDX-License-Identifier: Apache-2.0
// Handles of CUDA IPC that are given and cannot be opened, as in containers with IPC namespaces of their own:
// groups take descriptors, unless a rank wants handles.
#include <string>
#include <vector>

#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "cuda/emulated/tests/expect.hpp"
#include "cuda/gpu.hpp"
#include "watched.hpp"

namespace {

using namespace collx;
using gpu_test::buffer, gpu_test::stream;

template <class Transport>
void take_descriptors(communicator<Transport>& host) {
  gpu_test::arena memory(1 << 20);
  stream const s;
  gpu_settings chosen = gpu_settings::from_environment();
  chosen.heap_bytes = 1 << 16;
  gpu_communicator gpu(host, chosen);
  buffer<float> staged(std::vector<float>(5000, 1.0f));
  auto in_place = gpu.allocate<float>(5000);
  buffer<float>::fill(in_place.data(), std::vector<float>(5000, 1.0f));
  all_reduce<algo::ring>(gpu, staged, sum, on(s.id));
  all_reduce<algo::ring>(gpu, in_place, sum, on(s.id));
  gpu.synchronize(on(s.id));
  std::vector<float> const expected(5000, static_cast<float>(gpu.size()));
  std::vector<float> got(5000);
  expect(staged.content() == expected, "all_reduce over windows");
  good(cudaMemcpy(got.data(), in_place.data(), got.size() * sizeof(float), cudaMemcpyDeviceToHost), "copy");
  expect(got == expected, "all_reduce of memory in windows");
}

template <class Transport>
void refuse_if_one_wants_handles(communicator<Transport>& host) {
  gpu_settings chosen = gpu_settings::from_environment();
  if (host.rank() == 0) chosen.handles = window_handles::ipc;
  std::string told;
  try {
    gpu_communicator const gpu(host, chosen);
  } catch (error const& e) {
    told = e.what();
  }
  expect(told.find("mapping a peer's window") != std::string::npos, "that a window was not mapped is told");
  barrier(host);
}

}  // namespace

int main() {
  (void)setenv("COLLX_EMULATED_CLOSED_HANDLES", "1", 1);
  gpu_test::prepare_environment();
  for (rank_t const size : {2, 3}) {
    auto const codes = watched::on_processes(size, [](auto& host) {
      take_descriptors(host);
      refuse_if_one_wants_handles(host);
      take_descriptors(host);  // nothing of it has done harm
    });
    for (int const code : codes) expect(code == 0, "a rank failed");
  }
  std::puts("handles that cannot be opened: ok");
}
