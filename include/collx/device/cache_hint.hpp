// SPDX-License-Identifier: Apache-2.0
// Hints about cache lines that another processor will read, or has read. They never change what a
// program computes, and are no-ops where a processor does not know them.
#pragma once

#include <cstddef>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::device {

// Pushes freshly written lines toward the cache the processors share: the reader then need not ask
// the writer's own cache for them. (On x86 an instruction that older processors take for a no-op.)
inline void demote(std::byte const* p, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  for (std::size_t at = 0; at < bytes; at += 64) asm volatile("cldemote %0" : : "m"(p[at]));
#else
  (void)p;
  (void)bytes;
#endif
}

// Fetches lines for writing, which takes them away from the processor that read them last. Worth it
// while one waits anyway, for memory that is written next.
inline void prefetch_exclusive(std::byte const* p, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  for (std::size_t at = 0; at < bytes; at += 64) asm volatile("prefetchw %0" : : "m"(p[at]));
#else
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + at, 1);
#endif
}

}  // namespace collx::inline abi_1::device
