// SPDX-License-Identifier: Apache-2.0
// Loads that add up in the switch, and stores that it spreads: the multimem instructions, of sm_90 and later.
#pragma once

#include "collx/device/pack.hpp"

namespace collx::inline abi_1::device {

// What the switch adds up; numbers of 16 bits in 32.
template <class T>
inline constexpr bool has_multimem =
    std::is_same_v<T, float> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// Memory of exec/multicast_lane.hpp at a multicast address. Compiled for a device that has no such
// instructions the members do nothing, and nobody gets one (switch_driver in collective/gpu_multicast.cuh).
template <class T>
struct multimem {
  static_assert(has_multimem<T>);
  std::byte* at;

  // The replicas are written at other addresses, by other kernels. A proxy fence orders accesses to one
  // memory at different addresses.
  COLLX_HD void begin() const noexcept { fence(); }
  COLLX_HD void end() const noexcept { fence(); }

  [[nodiscard]] COLLX_HD detail::vector sum([[maybe_unused]] std::size_t i) const noexcept {
    detail::vector all{};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    auto const from = __cvta_generic_to_global(at + i * detail::vector_bytes);
    if constexpr (std::is_same_v<T, float>) {
      float f[4];
      asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(f[0]), "=f"(f[1]), "=f"(f[2]), "=f"(f[3])
                   : "l"(from)
                   : "memory");
      COLLX_UNROLL
      for (int w = 0; w < 4; ++w) all.words[w] = __builtin_bit_cast(std::uint32_t, f[w]);
    } else if constexpr (std::is_same_v<T, float16>) {
      asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%0, %1, %2, %3}, [%4];"
                   : "=r"(all.words[0]), "=r"(all.words[1]), "=r"(all.words[2]), "=r"(all.words[3])
                   : "l"(from)
                   : "memory");
    } else {
      asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
                   : "=r"(all.words[0]), "=r"(all.words[1]), "=r"(all.words[2]), "=r"(all.words[3])
                   : "l"(from)
                   : "memory");
    }
#endif
    return all;
  }

  COLLX_HD void store([[maybe_unused]] std::size_t i,
                      [[maybe_unused]] detail::vector const& v) const noexcept {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    // As bits: a store does not care for the type.
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(
                     __cvta_generic_to_global(at + i * detail::vector_bytes)),
                 "f"(__builtin_bit_cast(float, v.words[0])), "f"(__builtin_bit_cast(float, v.words[1])),
                 "f"(__builtin_bit_cast(float, v.words[2])), "f"(__builtin_bit_cast(float, v.words[3]))
                 : "memory");
#endif
  }

 private:
  COLLX_HD static void fence() noexcept {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.alias;" ::: "memory");
#endif
  }
};

}  // namespace collx::inline abi_1::device
