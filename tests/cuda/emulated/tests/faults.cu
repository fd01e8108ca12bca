// SPDX-License-Identifier: Apache-2.0
// Kernels that do what they must not, and launches that are refused: what the emulated runtime says of them.
#include <cstdint>

#include <cuda_runtime.h>

#include "cuda/emulated/tests/expect.hpp"

namespace {

__global__ void store(int* at) { *at = 1; }
__global__ void __launch_bounds__(64) bounded(int* at) { *at = 1; }
__global__ void hand_over(int* at) {
  extern __shared__ int room[];
  room[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) *at = room[blockDim.x - 1];
}

void fails(int* at, cudaError_t wanted) {
  store<<<1, 1>>>(at);
  good(cudaPeekAtLastError(), "a launch that will fail");
  expect(cudaStreamSynchronize(nullptr), wanted, "what the kernel met with");
  void* memory = nullptr;
  expect(cudaGetLastError(), wanted, "it is the last error");
  expect(cudaMalloc(&memory, 4), wanted, "every later call says it");
  cudaStream_t s = nullptr;
  expect(cudaStreamCreate(&s), wanted, "every later call says it");
}

void refused() {
  int* memory = nullptr;
  good(cudaMalloc(reinterpret_cast<void**>(&memory), 4), "cudaMalloc");
  auto const launched = [&](auto kernel, dim3 grid, dim3 block, std::size_t shared) {
    kernel<<<grid, block, shared>>>(memory);
    return cudaGetLastError();
  };
  expect(launched(store, 0, 1, 0), cudaErrorInvalidConfiguration, "no block");
  expect(launched(store, 1, 1025, 0), cudaErrorInvalidConfiguration, "too many threads");
  expect(launched(bounded, 1, 65, 0), cudaErrorInvalidConfiguration, "more threads than its bounds");
  expect(launched(store, dim3(1, 65536), 1, 0), cudaErrorInvalidConfiguration, "too wide a grid");
  constexpr int much = 100 * 1024;
  expect(launched(hand_over, 1, 32, much), cudaErrorInvalidValue, "shared memory that was not asked for");
  good(cudaFuncSetAttribute(hand_over, cudaFuncAttributeMaxDynamicSharedMemorySize, much), "asking for it");
  good(launched(hand_over, 1, 32, much), "shared memory that was asked for");
  int blocks = 0, got = 0;
  good(cudaMemcpy(&got, memory, sizeof got, cudaMemcpyDeviceToHost), "cudaMemcpy");
  expect(got == 31, "what the kernel wrote");
  good(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, hand_over, 32, much), "occupancy");
  expect(blocks == 1, "of 164 KiB");
  void* arguments[] = {&memory};
  expect(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(&hand_over), dim3(9), dim3(32), arguments, much,
                                     nullptr),
         cudaErrorCooperativeLaunchTooLarge, "more blocks than there is room for");
  good(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(&hand_over), dim3(8), dim3(32), arguments, much,
                                   nullptr),
       "as many as there is room for");
  good(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  good(cudaFree(memory), "cudaFree");
}

void use_after_free() {
  int* memory = nullptr;
  good(cudaMalloc(reinterpret_cast<void**>(&memory), 4), "cudaMalloc");
  good(cudaFree(memory), "cudaFree");
  fails(memory, cudaErrorIllegalAddress);
}
void beyond() {
  int* memory = nullptr;
  good(cudaMalloc(reinterpret_cast<void**>(&memory), 100), "cudaMalloc");
  fails(memory + 25, cudaErrorIllegalAddress);
}
void between_words() {
  char* memory = nullptr;
  good(cudaMalloc(reinterpret_cast<void**>(&memory), 100), "cudaMalloc");
  fails(reinterpret_cast<int*>(memory + 2), cudaErrorMisalignedAddress);
}
void of_the_host() {
  int on_the_stack = 0;
  fails(&on_the_stack, cudaErrorIllegalAddress);
}
void on_another_device() {
  cudaStream_t s = nullptr;
  int* memory = nullptr;
  good(cudaStreamCreate(&s), "cudaStreamCreate");
  good(cudaMalloc(reinterpret_cast<void**>(&memory), 100), "cudaMalloc");
  good(cudaSetDevice(1), "cudaSetDevice");
  store<<<1, 1, 0, s>>>(memory);
  expect(cudaGetLastError(), cudaErrorInvalidResourceHandle, "a stream of another device");
  good(cudaDeviceEnablePeerAccess(0, 0), "cudaDeviceEnablePeerAccess");
  store<<<1, 1>>>(memory);
  good(cudaDeviceSynchronize(), "memory of a peer");
  good(cudaDeviceDisablePeerAccess(0), "cudaDeviceDisablePeerAccess");
  fails(memory, cudaErrorIllegalAddress);
}

}  // namespace

int main() {
  (void)setenv("COLLX_EMULATED_GPUS", "2", 1);
  in_a_child(refused, "launches that are refused");
  in_a_child(use_after_free, "memory that was freed");
  in_a_child(beyond, "memory behind an allocation");
  in_a_child(between_words, "an address between words");
  in_a_child(of_the_host, "memory of the host");
  in_a_child(on_another_device, "memory of another device");
  std::puts("faults on the emulated GPU: ok");
}
