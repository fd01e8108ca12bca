// SPDX-License-Identifier: Apache-2.0
// Elements in the registers of one thread: read and written 16 bytes at a time, widened to the accumulate
// type and rounded again. What the loops of combine.hpp are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "collx/device/alignment.hpp"
#include "collx/device/cuda/small_float.cuh"
#include "collx/op/small_float.hpp"

namespace collx::inline abi_1::device::detail {

// What one access takes.
struct alignas(vector_bytes) vector {
  std::uint32_t words[4];
};

// In a kernel: global memory, of this GPU or mapped from another one. Ordinary (coherent) accesses, since a
// peer may have written there a moment ago, which the read-only cache would not see. The first-level cache
// may keep what they read: they are weak, so it is seen anew after an acquire of the peer's flag, with which
// a multiprocessor forgets that cache, and by the next kernel. Measured, not to keep it (L1::no_allocate) is
// slower (docs/decisions.md). Volatile, so that loads which are written together stay together, and in front
// of what uses them.
[[nodiscard]] COLLX_HD_INLINE vector load_vector(std::byte const* from) noexcept {
  vector loaded;
#if defined(__CUDA_ARCH__)
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(loaded.words[0]), "=r"(loaded.words[1]), "=r"(loaded.words[2]), "=r"(loaded.words[3])
               : "l"(__cvta_generic_to_global(from))
               : "memory");
#else
  __builtin_memcpy(&loaded, from, sizeof loaded);
#endif
  return loaded;
}

COLLX_HD_INLINE void store_vector(std::byte* to, vector const& stored) noexcept {
#if defined(__CUDA_ARCH__)
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
               "r"(stored.words[0]), "r"(stored.words[1]), "r"(stored.words[2]), "r"(stored.words[3])
               : "memory");
#else
  __builtin_memcpy(to, &stored, sizeof stored);
#endif
}

// The fewest elements that fill whole vectors: 4 floats, 16 numbers of 8 bits, 4 structs of 12 bytes.
template <class T>
inline constexpr std::size_t lowest_bit = sizeof(T) & (~sizeof(T) + 1);
template <class T>
inline constexpr std::size_t pack_elements = lowest_bit<T> < vector_bytes ? vector_bytes / lowest_bit<T> : 1;

// How memory is accessed: element by element, as its type is aligned, or in vectors.
enum class access : bool { elements, vectors };

// More than these a thread does not hold in registers; such elements are taken one by one.
inline constexpr std::size_t pack_bytes_max = 128;
template <class T>
inline constexpr bool has_vectors = pack_elements<T> * sizeof(T) <= pack_bytes_max;

// N elements as they are in memory. Apart from the elements: of the small ones, each takes a register, so
// that they are taken out of their vector late and put into one early.
template <access By, class T, std::size_t N>
struct pack {
  using part = std::conditional_t<By == access::vectors, vector, T>;
  part parts[N * sizeof(T) / sizeof(part)];

  COLLX_HD_INLINE void load(T const* from) noexcept {
    COLLX_UNROLL
    for (std::size_t i = 0; i < sizeof parts / sizeof(part); ++i) {
      if constexpr (By == access::elements) parts[i] = from[i];
      else parts[i] = load_vector(reinterpret_cast<std::byte const*>(from) + i * vector_bytes);
    }
  }
  COLLX_HD_INLINE void store(T* to) const noexcept {
    COLLX_UNROLL
    for (std::size_t i = 0; i < sizeof parts / sizeof(part); ++i) {
      if constexpr (By == access::elements) to[i] = parts[i];
      else store_vector(reinterpret_cast<std::byte*>(to) + i * vector_bytes, parts[i]);
    }
  }
  COLLX_HD_INLINE void get(T (&elements)[N]) const noexcept {
    static_assert(sizeof elements == sizeof parts);
    __builtin_memcpy(static_cast<void*>(elements), parts, sizeof parts);
  }
  COLLX_HD_INLINE void set(T const (&elements)[N]) noexcept {
    static_assert(sizeof elements == sizeof parts);
    __builtin_memcpy(static_cast<void*>(parts), elements, sizeof parts);
  }
};

template <class Wide, class T, std::size_t N>
COLLX_HD_INLINE void widen_pack(Wide (&to)[N], T const (&from)[N]) {
  if constexpr (std::is_same_v<Wide, float> && has_instructions<T>) {
    widen_by_instruction(to, from);
  } else {
    COLLX_UNROLL
    for (std::size_t i = 0; i < N; ++i) to[i] = static_cast<Wide>(from[i]);
  }
}

template <class T, class Wide, std::size_t N>
COLLX_HD_INLINE void narrow_pack(T (&to)[N], Wide const (&from)[N]) {
  if constexpr (std::is_same_v<Wide, float> && has_instructions<T>) {
    narrow_by_instruction(to, from);
  } else {
    COLLX_UNROLL
    for (std::size_t i = 0; i < N; ++i) to[i] = static_cast<T>(from[i]);
  }
}

// Keeps a product a number of its own: a GPU would add to it without rounding it first, which the host does
// not.
template <class T>
COLLX_HD_INLINE void round_here([[maybe_unused]] T& product) noexcept {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>) asm volatile("" : "+f"(product));
  if constexpr (std::is_same_v<T, double>) asm volatile("" : "+d"(product));
  if constexpr (std::is_class_v<T> && !is_small_float<T> && sizeof(T) % sizeof(std::uint32_t) == 0) {
    std::uint32_t words[sizeof(T) / sizeof(std::uint32_t)];
    __builtin_memcpy(words, &product, sizeof words);
    COLLX_UNROLL
    for (std::uint32_t& each : words) asm volatile("" : "+r"(each));
    __builtin_memcpy(static_cast<void*>(&product), words, sizeof words);
  }
#endif
}

}  // namespace collx::inline abi_1::device::detail
