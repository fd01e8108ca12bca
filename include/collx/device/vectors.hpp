// SPDX-License-Identifier: Apache-2.0
// The kinds of code for vectors, as types: what each compiles for itself, and what only its own instructions
// can do. Everything else is written once, as bodies: types with a `run`, a template whose first parameter is
// one of these.
#pragma once

#include <cstddef>
#include <cstring>

#include "collx/device/cpu.hpp"

namespace collx::inline abi_1::device {

inline constexpr std::size_t line_bytes = 64;

struct generic_vectors {
  static constexpr std::size_t vector_bytes = 16;
  static constexpr bool converts_float16 = false;

  COLLX_VECTOR_INLINE static void copy(void* to, void const* from) noexcept {
    std::memcpy(to, from, vector_bytes);
  }
};

#if defined(COLLX_AVX2)
// Unlike the types of immintrin.h these take microseconds to compile.
typedef char vector_of_16 __attribute__((vector_size(16), may_alias));
typedef char vector_of_32 __attribute__((vector_size(32), may_alias));
typedef char vector_of_64 __attribute__((vector_size(64), may_alias));

struct avx2_vectors {
  static constexpr std::size_t vector_bytes = 32;
  static constexpr bool converts_float16 = true;

  template <class Body, class... Args>
  COLLX_AVX2 static auto run(Args const&... args) {
    return Body::template run<avx2_vectors>(args...);
  }

  COLLX_AVX2 static void copy(void* to, void const* from) noexcept {
    vector_of_32 value;
    std::memcpy(&value, from, sizeof value);
    std::memcpy(to, &value, sizeof value);
  }

  // The same, of which a compiler makes no call of memcpy.
  COLLX_AVX2 static void move(void* to, void const* from) noexcept {
    vector_of_32 value;
    std::memcpy(&value, from, sizeof value);
    asm volatile("vmovdqu %1, %0" : "=m"(*static_cast<vector_of_32*>(to)) : "x"(value));
  }

  // `to` aligned to a vector. Such stores are ordered by fence_streams() only. Two of them, one right after
  // the other, leave the processor as one line, which need not be fetched.
  COLLX_AVX2 static void stream(void* to, void const* from) noexcept {
    vector_of_32 value;
    std::memcpy(&value, from, sizeof value);
    asm volatile("vmovntdq %1, %0" : "=m"(*static_cast<vector_of_32*>(to)) : "x"(value));
  }

  // As many as a vector has floats. These round, and treat NaNs, as op/small_float.hpp does.
  COLLX_AVX2 static void widen_float16(float* to, void const* from) noexcept {
    vector_of_16 narrow;
    vector_of_32 wide;
    std::memcpy(&narrow, from, sizeof narrow);
    asm("vcvtph2ps %1, %0" : "=x"(wide) : "x"(narrow));
    std::memcpy(to, &wide, sizeof wide);
  }

  COLLX_AVX2 static void narrow_float16(void* to, float const* from) noexcept {
    vector_of_32 wide;
    vector_of_16 narrow;
    std::memcpy(&wide, from, sizeof wide);
    asm("vcvtps2ph $0, %1, %0" : "=x"(narrow) : "x"(wide));
    std::memcpy(to, &narrow, sizeof narrow);
  }
};
#endif

#if defined(COLLX_AVX512)
struct avx512_vectors {
  static constexpr std::size_t vector_bytes = 64;
  static constexpr bool converts_float16 = true;

  template <class Body, class... Args>
  COLLX_AVX512 static auto run(Args const&... args) {
    return Body::template run<avx512_vectors>(args...);
  }

  COLLX_AVX512 static void copy(void* to, void const* from) noexcept {
    vector_of_64 value;
    std::memcpy(&value, from, sizeof value);
    std::memcpy(to, &value, sizeof value);
  }

  COLLX_AVX512 static void move(void* to, void const* from) noexcept {
    vector_of_64 value;
    std::memcpy(&value, from, sizeof value);
    asm volatile("vmovdqu64 %1, %0" : "=m"(*static_cast<vector_of_64*>(to)) : "v"(value));
  }

  COLLX_AVX512 static void stream(void* to, void const* from) noexcept {
    vector_of_64 value;
    std::memcpy(&value, from, sizeof value);
    asm volatile("vmovntdq %1, %0" : "=m"(*static_cast<vector_of_64*>(to)) : "v"(value));
  }

  COLLX_AVX512 static void widen_float16(float* to, void const* from) noexcept {
    vector_of_32 narrow;
    vector_of_64 wide;
    std::memcpy(&narrow, from, sizeof narrow);
    asm("vcvtph2ps %1, %0" : "=v"(wide) : "v"(narrow));
    std::memcpy(to, &wide, sizeof wide);
  }

  COLLX_AVX512 static void narrow_float16(void* to, float const* from) noexcept {
    vector_of_64 wide;
    vector_of_32 narrow;
    std::memcpy(&wide, from, sizeof wide);
    asm("vcvtps2ph $0, %1, %0" : "=v"(narrow) : "v"(wide));
    std::memcpy(to, &narrow, sizeof narrow);
  }
};
#endif

// memcpy, of up to a line a vector at a time: GCC keeps an array in registers if it is loaded and stored as
// it is computed with. clang wants to cut it up by itself.
template <class On, std::size_t Bytes>
COLLX_VECTOR_INLINE void copy_vectors(void* to, void const* from) noexcept {
#if defined(__clang__)
  constexpr bool is_cut = false;
#else
  constexpr bool is_cut = Bytes % On::vector_bytes == 0 && Bytes <= line_bytes;
#endif
  if constexpr (is_cut) {
    On::copy(to, from);
    if constexpr (Bytes > On::vector_bytes)
      copy_vectors<On, Bytes - On::vector_bytes>(static_cast<char*>(to) + On::vector_bytes,
                                                 static_cast<char const*>(from) + On::vector_bytes);
  } else {
    std::memcpy(to, from, Bytes);
  }
}

#if defined(COLLX_AVX2)
template <class On, std::size_t Bytes>
COLLX_VECTOR_INLINE void stream_vectors(void* to, void const* from) noexcept {
  On::stream(to, from);
  if constexpr (On::vector_bytes < Bytes)
    stream_vectors<On, Bytes - On::vector_bytes>(static_cast<char*>(to) + On::vector_bytes,
                                                 static_cast<char const*>(from) + On::vector_bytes);
}

template <class On, std::size_t Bytes>
COLLX_VECTOR_INLINE void move_vectors(void* to, void const* from) noexcept {
  On::move(to, from);
  if constexpr (On::vector_bytes < Bytes)
    move_vectors<On, Bytes - On::vector_bytes>(static_cast<char*>(to) + On::vector_bytes,
                                               static_cast<char const*>(from) + On::vector_bytes);
}

[[nodiscard]] inline bool has_wide_vectors() noexcept {
  return cpu::vectors_in_use != cpu::vector_kind::generic;
}

// Runs a body as the kind in use compiled it, where has_wide_vectors().
template <class Body, class... Args>
auto run_on_vectors(Args const&... args) {
#if defined(COLLX_AVX512)
  if (cpu::vectors_in_use == cpu::vector_kind::avx512) return avx512_vectors::run<Body>(args...);
#endif
  return avx2_vectors::run<Body>(args...);
}
#endif

}  // namespace collx::inline abi_1::device
