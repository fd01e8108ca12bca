// SPDX-License-Identifier: Apache-2.0
// Copies that stay in the caches: memcpy, but where a C library leaves it to a processor that is slow at it.
// For payloads of any length and wherever they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collx/device/cache_hint.hpp"
#include "collx/device/vectors.hpp"

namespace collx::inline abi_1::device {

inline constexpr std::size_t page_bytes = 4096;

// Whether a processor that copies strings slowly takes 20 times as long for this one: the destination is less
// than a vector of 32 bytes past the source, as places within pages. So it is on Zen 3 and 4, for any length
// (docs/decisions.md), where memory from malloc, 16 bytes into a page, is copied to from the begin of one.
[[nodiscard]] constexpr bool string_crawls(std::uintptr_t to, std::uintptr_t from) noexcept {
  return (to - from - 1) % page_bytes < 31;
}

#if defined(COLLX_AVX2)
// From here on, GNU's C library (2.36) has the processor copy strings.
inline constexpr std::size_t lines_bytes_min = 2048;
// Up to here copies by lines are quicker than strings that do not crawl.
inline constexpr std::size_t lines_bytes_max = 8192;
// From here on lines are fetched for writing so far ahead: a peer has read them, and may be far away.
inline constexpr std::size_t lines_fetched_bytes_min = 4096 + line_bytes;
inline constexpr std::size_t fetched_ahead_bytes = 24 * line_bytes;

struct copied_lines {
  template <class On>
  COLLX_VECTOR_INLINE static void run(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
    std::size_t const fetched = bytes >= lines_fetched_bytes_min ? bytes - fetched_ahead_bytes : 0;
    for (std::size_t at = 0; at < bytes; at += line_bytes) {
      if (at < fetched) prefetch_exclusive(to + at + fetched_ahead_bytes, 1);
      move_vectors<On, line_bytes>(to + at, from + at);
    }
  }
};

COLLX_NEVER_INLINE inline void copy_lines(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
  std::size_t const whole = bytes / line_bytes * line_bytes;
  run_on_vectors<copied_lines>(to, from, whole);
  std::memcpy(to + whole, from + whole, bytes - whole);
}

// Not under sanitizers, which do not see what is stored so.
[[nodiscard]] inline bool is_copied_by_lines(void* to, void const* from, std::size_t bytes) noexcept {
  if (COLLX_LIKELY(bytes < lines_bytes_min || COLLX_SANITIZED) || !cpu::copies_strings_slowly) return false;
  return bytes <= lines_bytes_max ||
         string_crawls(reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from));
}
#endif

// As memcpy; `to` and `from` may be null if there is nothing to be copied.
inline void copy_cached(void* to, void const* from, std::size_t bytes) noexcept {
#if defined(COLLX_AVX2)
  if (is_copied_by_lines(to, from, bytes))
    return copy_lines(static_cast<std::byte*>(to), static_cast<std::byte const*>(from), bytes);
#endif
  if (bytes != 0) std::memcpy(to, from, bytes);
}

}  // namespace collx::inline abi_1::device
