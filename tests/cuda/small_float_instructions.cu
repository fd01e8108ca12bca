// SPDX-License-Identifier: Apache-2.0
// The GPU's own conversions of small floats (device/cuda/small_float.cuh) give the bits of
// op/small_float.hpp, but for NaNs: every pattern, and floats from all over their range (small: every 5917th
// instead of every 97th). Needs a GPU for more than to compile.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <collx/device/pack.hpp>
#include <cuda_runtime.h>

namespace {

using namespace collx;

__device__ bool same(float a, float b) { return a == b || (a != a && b != b); }

// How many of the patterns first, first + stride, ..., and of the floats of which `gap` times as many are
// left out, are converted otherwise, by pairs and singly.
template <class T>
__device__ unsigned differences(std::uint64_t first, std::uint64_t stride, std::uint64_t gap) {
  using storage = decltype(T::from_bits(0).bits());
  unsigned wrong = 0;
  for (std::uint64_t bits = first; bits < std::uint64_t{1} << (8 * sizeof(T)); bits += stride) {
    T const both[] = {T::from_bits(static_cast<storage>(bits)), T::from_bits(static_cast<storage>(~bits))};
    T const one[] = {both[0]};
    float wide[2], wide_one[1];
    device::detail::widen_pack(wide, both);
    device::detail::widen_pack(wide_one, one);
    wrong += !same(wide[0], both[0]) || !same(wide[1], both[1]) || !same(wide_one[0], both[0]);
  }
  for (std::uint64_t bits = first; bits < std::uint64_t{1} << 32; bits += stride * gap) {
    float const wide[] = {__builtin_bit_cast(float, static_cast<std::uint32_t>(bits)),
                          __builtin_bit_cast(float, static_cast<std::uint32_t>(~bits))};
    float const wide_one[] = {wide[0]};
    T both[2], one[1];
    device::detail::narrow_pack(both, wide);
    device::detail::narrow_pack(one, wide_one);
    for (int i = 0; i < 2; ++i) {
      T const expected(wide[i]);
      wrong += !same(both[i], expected) || (wide[i] == wide[i] && both[i].bits() != expected.bits());
    }
    wrong += one[0].bits() != both[0].bits();
  }
  return wrong;
}

template <class T>
__global__ void compare(unsigned* wrong, std::uint64_t gap) {
  unsigned const here = differences<T>(blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x, gap);
  if (here != 0) atomicAdd(wrong, here);
}

void require(cudaError_t error, char const* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

template <class T>
unsigned count(char const* name, std::uint64_t gap) {
  unsigned *wrong = nullptr, result = 0;
  require(cudaMalloc(&wrong, sizeof *wrong), "cudaMalloc");
  require(cudaMemset(wrong, 0, sizeof *wrong), "cudaMemset");
  compare<T><<<256, 256>>>(wrong, gap);
  require(cudaGetLastError(), "launch");
  require(cudaMemcpy(&result, wrong, sizeof result, cudaMemcpyDeviceToHost), "compare");
  require(cudaFree(wrong), "cudaFree");
  std::printf("%-12s %u differences\n", name, result);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("SKIPPED: no GPU");
    return 0;
  }
  std::uint64_t const gap = argc > 1 && std::string_view(argv[1]) == "small" ? 5917 : 97;
  unsigned const wrong = count<float16>("float16", gap) + count<bfloat16>("bfloat16", gap) +
                         count<float8_e4m3>("float8_e4m3", gap) + count<float8_e5m2>("float8_e5m2", gap);
  return wrong == 0 ? 0 : 1;
}
