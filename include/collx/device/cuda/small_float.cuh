// SPDX-License-Identifier: Apache-2.0
// The GPU's own conversions between small floats and float, two elements at a time. They give the bits that
// op/small_float.hpp gives, but for NaNs: those stay NaNs and lose their payload and sign.
//
// Why: in the bit arithmetic of op/small_float.hpp, a sum of 8-bit numbers would take a Hopper GPU longer to
// compute than to read. Needs no header of CUDA, and may be included by what is compiled for the host.
#pragma once

#include <cstddef>
#include <type_traits>

#include "collx/op/small_float.hpp"

namespace collx::inline abi_1::device::detail {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

// From Ada on.
inline constexpr bool has_float8_instructions = __CUDA_ARCH__ >= 890;

template <class T>
inline constexpr bool has_instructions = is_small_float<T> && (sizeof(T) == 2 || has_float8_instructions);

// The bits of two elements, the first one in the lower half.
template <class T>
using pair_bits = std::conditional_t<sizeof(T) == 1, std::uint16_t, std::uint32_t>;

template <class T>
__device__ __forceinline__ void widen_two(float& first, float& second, pair_bits<T> bits) noexcept {
  if constexpr (std::is_same_v<T, float16>)
    asm("{.reg .f16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
        : "=f"(first), "=f"(second)
        : "r"(bits));
  else if constexpr (std::is_same_v<T, float8_e4m3>)
    asm("{.reg .b32 p; .reg .f16 l, h; cvt.rn.f16x2.e4m3x2 p, %2; mov.b32 {l, h}, p; cvt.f32.f16 %0, l; "
        "cvt.f32.f16 %1, h;}"
        : "=f"(first), "=f"(second)
        : "h"(bits));
  else if constexpr (std::is_same_v<T, float8_e5m2>)
    asm("{.reg .b32 p; .reg .f16 l, h; cvt.rn.f16x2.e5m2x2 p, %2; mov.b32 {l, h}, p; cvt.f32.f16 %0, l; "
        "cvt.f32.f16 %1, h;}"
        : "=f"(first), "=f"(second)
        : "h"(bits));
  else {
    first = __builtin_bit_cast(float, bits << 16);
    second = __builtin_bit_cast(float, bits & 0xffff0000u);
  }
}

// The instruction stores what is too large for e5m2 as its largest number; the type has infinities for that.
// From half way between that number and the next power of two on, rounding goes up.
__device__ __forceinline__ std::uint16_t with_infinities(std::uint16_t bits, float first,
                                                         float second) noexcept {
  constexpr float infinite_min = 61440.0f;
  unsigned result = bits;
  if (__builtin_fabsf(first) >= infinite_min) result = (result & 0xff80u) | 0x007cu;
  if (__builtin_fabsf(second) >= infinite_min) result = (result & 0x80ffu) | 0x7c00u;
  return static_cast<std::uint16_t>(result);
}

template <class T>
[[nodiscard]] __device__ __forceinline__ pair_bits<T> narrow_two(float first, float second) noexcept {
  pair_bits<T> bits;
  if constexpr (std::is_same_v<T, float16>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  else if constexpr (std::is_same_v<T, bfloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  else if constexpr (std::is_same_v<T, float8_e4m3>)
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(second), "f"(first));
  else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(second), "f"(first));
    bits = with_infinities(bits, first, second);
  }
  return bits;
}

// N elements; of an odd number the last one has a zero beside it.
template <class T, std::size_t N>
__device__ __forceinline__ void widen_by_instruction(float (&to)[N], T const (&from)[N]) noexcept {
  COLLX_UNROLL
  for (std::size_t i = 0; i < N; i += 2) {
    pair_bits<T> bits = 0;
    __builtin_memcpy(&bits, from + i, i + 1 < N ? sizeof bits : sizeof(T));
    float unused;
    widen_two<T>(to[i], i + 1 < N ? to[i + 1] : unused, bits);
  }
}

template <class T, std::size_t N>
__device__ __forceinline__ void narrow_by_instruction(T (&to)[N], float const (&from)[N]) noexcept {
  COLLX_UNROLL
  for (std::size_t i = 0; i < N; i += 2) {
    pair_bits<T> const bits = narrow_two<T>(from[i], i + 1 < N ? from[i + 1] : 0.0f);
    __builtin_memcpy(static_cast<void*>(to + i), &bits, i + 1 < N ? sizeof bits : sizeof(T));
  }
}

#else

template <class T>
inline constexpr bool has_instructions = false;

#endif

}  // namespace collx::inline abi_1::device::detail
