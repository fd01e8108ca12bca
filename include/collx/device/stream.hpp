// SPDX-License-Identifier: Apache-2.0
// Stores that go past the caches: for results that are not in the cache when they are written, and
// would be fetched only to be overwritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <unistd.h>

#include "collx/device/copy_cached.hpp"

namespace collx::inline abi_1::device {

inline constexpr std::size_t stream_divisor = 32;

namespace detail {

[[nodiscard]] inline std::size_t& stream_threshold() noexcept {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  static std::size_t threshold = [] {
    long const cache_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return cache_bytes > 0 ? static_cast<std::size_t>(cache_bytes) / stream_divisor : std::size_t{1} << 16;
  }();
#else
  static std::size_t threshold = std::size_t{1} << 16;
#endif
  return threshold;
}

[[nodiscard]] inline cpu::shared_cache& result_cache_setting() noexcept {
  static cpu::shared_cache cache = cpu::find_shared_cache();
  return cache;
}

}  // namespace detail

// Vectors larger than this are streamed, but see result_cache(): a thirty-second of the second-level cache. A
// result larger than that has usually left the cache since the last call. Measured for all_reduce with
// buffers that rotate (2 processes, 2 MiB of second-level cache): streaming wins from 128 KiB on, by 1.3 at
// 128 KiB and 1.45 at 512 KiB. With one hot buffer it loses up to 2 between 128 KiB and 512 KiB.
[[nodiscard]] inline std::size_t stream_bytes_min() noexcept { return detail::stream_threshold(); }
// For who knows the caches better than the system says; before collectives run.
inline void stream_bytes_min(std::size_t value) noexcept { detail::stream_threshold() = value; }

// Buffers of a call, input and output together, that are still in the caches when the next call uses them
// again: three quarters of a second-level cache.
[[nodiscard]] inline std::size_t hot_bytes_max() noexcept { return 24 * stream_bytes_min(); }

// The cache that processors share, where results are better kept there than stored past it; else of no bytes.
[[nodiscard]] inline cpu::shared_cache result_cache() noexcept { return detail::result_cache_setting(); }
// As stream_bytes_min(value).
inline void result_cache(cpu::shared_cache const& value) noexcept { detail::result_cache_setting() = value; }

// Whether a call's buffers, of so many bytes in each of so many ranks, fit so many sixteenths of it.
[[nodiscard]] inline bool fits_result_cache(std::size_t bytes, std::size_t ranks,
                                            std::size_t sixteenths) noexcept {
  cpu::shared_cache const& cache = detail::result_cache_setting();
  std::size_t const sharing = ranks < cache.processors ? ranks : cache.processors;
  return bytes <= cache.bytes / 16 / sharing * sixteenths;
}

// What a call must have at least for its buffers to be remembered.
[[nodiscard]] inline std::size_t remembered_bytes_min() noexcept { return stream_bytes_min() / 4; }

// What the system copies from another process goes through the caches. Above two second-level caches that
// is slower than to go past them.
[[nodiscard]] inline std::size_t fetched_bytes_max() noexcept { return 64 * stream_bytes_min(); }

inline constexpr std::size_t spread_group_bytes = 4 * line_bytes;

// So many neighbouring pages are copied at a time, a line of each in turn, where a processor fetches ahead
// within a page only: several have more of their lines under way. On an Intel Xeon four take 0.79 to 0.82 of
// the time of one after the other, from 128 KiB to 32 MiB on both cores at once; two 0.87 to 0.90, eight no
// less than four; halves of pages, or fetching ahead by instructions, gain nothing.
inline constexpr std::size_t pages_at_a_time = 4;

#if defined(COLLX_AVX2)

// Makes streamed lines visible before any later store: a release store alone does not.
inline void fence_streams() noexcept { asm volatile("sfence" ::: "memory"); }

struct streamed_lines {
  template <class On>
  COLLX_VECTOR_INLINE static void run(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += line_bytes) stream_vectors<On, line_bytes>(to + at, from + at);
  }
};

struct streamed_pages {
  template <class On>
  COLLX_VECTOR_INLINE static void run(std::byte* to, std::byte const* from) noexcept {
    for (std::size_t at = 0; at < page_bytes; at += line_bytes)
      for (std::size_t page = 0; page < pages_at_a_time; ++page)
        stream_vectors<On, line_bytes>(to + page * page_bytes + at, from + page * page_bytes + at);
  }
};

// `helped`: several pages at a time.
COLLX_NEVER_INLINE inline void copy_streamed(std::byte* to, std::byte const* from, std::size_t bytes,
                                             bool helped) noexcept {
  std::size_t const head = (line_bytes - reinterpret_cast<std::uintptr_t>(to) % line_bytes) % line_bytes;
  std::size_t const lines = (bytes - head) / line_bytes * line_bytes;
  std::memcpy(to, from, head);
  std::size_t at = head;
  if (helped)
    for (; head + lines - at >= pages_at_a_time * page_bytes; at += pages_at_a_time * page_bytes)
      run_on_vectors<streamed_pages>(to + at, from + at);
  run_on_vectors<streamed_lines>(to + at, from + at, head + lines - at);
  std::memcpy(to + head + lines, from + head + lines, bytes - head - lines);
  fence_streams();
}

// A few lines to each destination in turn: whole blocks of 16 KiB in turn take 1.2 times as long.
struct spread_lines {
  template <class On>
  COLLX_VECTOR_INLINE static void run(std::byte* const* to, std::int32_t count, std::byte const* from,
                                      std::size_t at, std::size_t end) noexcept {
    for (; at < end; at += spread_group_bytes)
      for (std::int32_t j = 0; j < count; ++j)
        streamed_lines::run<On>(to[j] + at, from + at, spread_group_bytes);
  }
};

COLLX_NEVER_INLINE inline void spread_streamed(std::byte* const* to, std::int32_t count,
                                               std::byte const* from, std::size_t bytes) noexcept {
  std::size_t const head = (line_bytes - reinterpret_cast<std::uintptr_t>(to[0]) % line_bytes) % line_bytes;
  std::size_t const end = head + (bytes - head) / spread_group_bytes * spread_group_bytes;
  for (std::int32_t j = 0; j < count; ++j) {
    std::memcpy(to[j], from, head);
    std::memcpy(to[j] + end, from + end, bytes - end);
  }
  run_on_vectors<spread_lines>(to, count, from, head, end);
  fence_streams();
}
#endif

// memcpy, past the caches if `streamed` and the processor can.
inline void copy(std::byte* to, std::byte const* from, std::size_t bytes, bool streamed) noexcept {
#if defined(COLLX_AVX2)
  if (streamed && has_wide_vectors() && bytes >= 16 * line_bytes)
    return copy_streamed(to, from, bytes, cpu::wants_help_fetching);
#else
  (void)streamed;
#endif
  copy_cached(to, from, bytes);
}

// The same to several destinations, reading memory once.
inline void spread(std::byte* const* to, std::int32_t count, std::byte const* from, std::size_t bytes,
                   bool streamed) noexcept {
#if defined(COLLX_AVX2)
  bool alike = streamed && has_wide_vectors() && bytes >= 16 * line_bytes && count > 0;
  for (std::int32_t j = 1; j < count; ++j)
    alike = alike && (to[j] - to[0]) % std::ptrdiff_t{line_bytes} == 0;
  if (alike) return spread_streamed(to, count, from, bytes);
#endif
  constexpr std::size_t block_bytes = 16384;  // what a first-level cache holds
  for (std::size_t at = 0; at < bytes; at += block_bytes)
    for (std::int32_t j = 0; j < count; ++j)
      copy(to[j] + at, from + at, bytes - at < block_bytes ? bytes - at : block_bytes, streamed);
}

}  // namespace collx::inline abi_1::device
