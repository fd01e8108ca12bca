// SPDX-License-Identifier: Apache-2.0
// Kernels compiled for sm_80, on GPUs that could add up in the switch between them: they lack the
// instructions for it, so that the library must not take it. Two GPUs, of sm_90.
#include <collx/collx.hpp>
#include <collx/gpu.cuh>

#include "cuda/gpu.hpp"
#include "cuda/switch.cuh"
#include "watched.hpp"

int main() {
  using namespace gpu_test;
  if (!may_begin()) return 1;
  try {
    watched::on_threads(2, [](auto& host) {
      require(cudaSetDevice(host.rank()), "cudaSetDevice");
      arena memory(std::size_t{1} << 20);
      stream const s;
      barrier(host);  // nobody's kernels wait while streams are made
      gpu_communicator gpu(host);
      bool const is_taken = switched<float>(host, gpu, 1).data.in_switch();
      check(!is_taken, "a switch was taken of which the kernels know nothing");
      try_switch<float>(host, gpu, s, {.must = false, .has_late = true});
    });
  } catch (std::exception const& wrong) {
    std::fprintf(stderr, "%s\n", wrong.what());
    return 1;
  }
}
