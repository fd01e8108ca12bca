// SPDX-License-Identifier: Apache-2.0
// Collectives that the host drives, with and without a reduction, on memory of a GPU. It is only compiled: no
// kernel may come of it.
#include <collx/collx.hpp>
#include <collx/gpu.cuh>
#include <collx/transport/shm.hpp>

using namespace collx;

void drive(communicator<transport::shm>& world, std::span<float> in, std::span<float> out,
           cudaStream_t stream) {
  transport::cuda_parts::copy_engine copies;
  gpu_driven_by_host<transport::shm> gpu(world, copies);
  all_gather(gpu, in, out, on(stream));
  all_to_all(gpu, in, out, on(stream));
  broadcast(gpu, out, 0, on(stream));
  gather(gpu, in, out, 0, on(stream));
  scatter(gpu, in, out, 0, on(stream));
  all_reduce(gpu, in, out, sum, on(stream));  // by the host
}
