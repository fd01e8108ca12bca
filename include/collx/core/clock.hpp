// SPDX-License-Identifier: Apache-2.0
// Time for deadlines. <chrono> costs a tenth of a second of everybody's compile time; this does not.
#pragma once

#include <time.h>

#include <cstdint>

namespace collx::inline abi_1 {

// Microseconds of the monotonic clock; only differences mean anything.
[[nodiscard]] inline std::uint64_t now_us() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000u + static_cast<std::uint64_t>(t.tv_nsec) / 1'000u;
}

// The same in nanoseconds, for what is shorter.
[[nodiscard]] inline std::uint64_t now_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// The time in so many microseconds. A patience without end, such as UINT64_MAX, does not wrap, nor does what
// is added to the sum.
[[nodiscard]] inline std::uint64_t deadline_in(std::uint64_t patience_us) noexcept {
  constexpr std::uint64_t endless_us = std::uint64_t{1} << 62;
  return now_us() + (patience_us < endless_us ? patience_us : endless_us);
}

// Tells the processor that this is a spin loop: frees the pipeline for a sibling thread and avoids
// the memory-order flush on leaving the loop.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace collx::inline abi_1
