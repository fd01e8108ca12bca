// SPDX-License-Identifier: Apache-2.0
// The small floats have the bits and the rounding of CUDA's: every pattern, and floats from all over
// their range, compared on the host; in a kernel too where there is a GPU.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <collx/op/small_float.hpp>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

namespace {

using namespace collx;

// CUDA's type of the same format, and its conversion with the same rule for what is too large.
template <class Ours>
struct cuda_twin;
template <>
struct cuda_twin<float16> {
  using type = __half;
  static COLLX_HD type round(float f) { return __float2half_rn(f); }
};
template <>
struct cuda_twin<bfloat16> {
  using type = __nv_bfloat16;
  static COLLX_HD type round(float f) { return __float2bfloat16_rn(f); }
};
template <>
struct cuda_twin<float8_e4m3> {
  using type = __nv_fp8_e4m3;
  static COLLX_HD type round(float f) {
    type result;
    result.__x = __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3);
    return result;
  }
};
template <>
struct cuda_twin<float8_e5m2> {
  using type = __nv_fp8_e5m2;
  static COLLX_HD type round(float f) {
    type result;
    result.__x = __nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E5M2);
    return result;
  }
};

COLLX_HD bool same(float a, float b) { return a == b || (a != a && b != b); }

// How many of the patterns and floats first, first + stride, ... differ.
template <class Ours>
COLLX_HD unsigned differences(std::uint64_t first, std::uint64_t stride) {
  using twin = cuda_twin<Ours>;
  using type = typename twin::type;
  static_assert(sizeof(type) == sizeof(Ours) && alignof(type) == alignof(Ours));
  unsigned wrong = 0;
  for (std::uint64_t bits = first; bits < std::uint64_t{1} << (8 * sizeof(Ours)); bits += stride) {
    Ours const ours = Ours::from_bits(static_cast<decltype(Ours::from_bits(0).bits())>(bits));
    type theirs;
    memcpy(static_cast<void*>(&theirs), &ours, sizeof theirs);
    wrong += !same(ours, static_cast<float>(theirs));
  }
  for (std::uint64_t bits = first; bits < std::uint64_t{1} << 32; bits += stride * 997) {
    float const f = __builtin_bit_cast(float, static_cast<std::uint32_t>(bits));
    type const theirs = twin::round(f);
    Ours const ours(f);
    Ours other = ours;
    memcpy(static_cast<void*>(&other), &theirs, sizeof other);
    wrong += !same(ours, other) || (f == f && ours.bits() != other.bits());
  }
  return wrong;
}

COLLX_HD unsigned all_differences(std::uint64_t first, std::uint64_t stride) {
  return differences<float16>(first, stride) + differences<bfloat16>(first, stride) +
         differences<float8_e4m3>(first, stride) + differences<float8_e5m2>(first, stride);
}

__global__ void compare(unsigned* wrong) {
  unsigned const here = all_differences(blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
  if (here != 0) atomicAdd(wrong, here);
}

void require(cudaError_t error, char const* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

}  // namespace

int main() {
  unsigned const on_host = all_differences(0, 1);
  std::printf("on the host: %u differences\n", on_host);
  if (on_host != 0) return 1;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::puts("on the device: SKIPPED: no GPU");
    return 0;
  }
  unsigned *wrong = nullptr, on_device = 0;
  require(cudaMalloc(&wrong, sizeof *wrong), "cudaMalloc");
  require(cudaMemset(wrong, 0, sizeof *wrong), "cudaMemset");
  compare<<<64, 256>>>(wrong);
  require(cudaGetLastError(), "launch");
  require(cudaMemcpy(&on_device, wrong, sizeof on_device, cudaMemcpyDeviceToHost), "compare");
  std::printf("on the device: %u differences\n", on_device);
  return on_device != 0;
}
