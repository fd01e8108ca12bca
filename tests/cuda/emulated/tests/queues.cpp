// SPDX-License-Identifier: Apache-2.0
// Streams of the emulated runtime that share a queue of the device, which CUDA lets them do: one stands
// behind what another one waits for. Those of another priority do not.
#include <cstdint>
#include <cstdlib>

#include <cuda.h>
#include <cudaTypedefs.h>

#include "cuda/emulated/tests/expect.hpp"

int main() {
  (void)setenv("COLLX_EMULATED_QUEUES", "1", 1);
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  cudaStream_t standing = nullptr, behind = nullptr, urgent = nullptr;
  int lowest = 0, highest = 0;
  good(cudaStreamCreateWithFlags(&standing, cudaStreamNonBlocking), "a stream");
  good(cudaStreamCreateWithFlags(&behind, cudaStreamNonBlocking), "a stream");
  good(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "priorities");
  good(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, highest), "a stream");
  std::uint32_t* word = nullptr;
  good(cudaHostAlloc(reinterpret_cast<void**>(&word), sizeof *word, 0), "cudaHostAlloc");
  *word = 0;
  void *wait = nullptr, *write = nullptr;
  cudaDriverEntryPointQueryResult how{};
  good(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &wait, 11070, 0, &how), "the entry point");
  good(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &write, 11070, 0, &how), "the entry point");
  auto const at = reinterpret_cast<CUdeviceptr>(word);
  expect(reinterpret_cast<PFN_cuStreamWaitValue32_v11070>(wait)(standing, at, 1, CU_STREAM_WAIT_VALUE_EQ) ==
             CUDA_SUCCESS,
         "cuStreamWaitValue32");
  cudaEvent_t passed = nullptr;
  good(cudaEventCreateWithFlags(&passed, cudaEventDisableTiming), "an event");
  good(cudaEventRecord(passed, behind), "cudaEventRecord");
  expect(reinterpret_cast<PFN_cuStreamWriteValue32_v11070>(write)(
             urgent, at, 2, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS,
         "cuStreamWriteValue32");
  good(cudaStreamSynchronize(urgent), "another priority has another queue");
  expect(cudaEventQuery(passed), cudaErrorNotReady, "the other stream stands behind it");
  expect(reinterpret_cast<PFN_cuStreamWriteValue32_v11070>(write)(
             urgent, at, 1, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS,
         "cuStreamWriteValue32");
  good(cudaStreamSynchronize(behind), "and goes on with it");
  std::puts("queues of the emulated runtime: ok");
}
