// SPDX-License-Identifier: Apache-2.0
// Threads that have no memory left, by replacing operator new and delete: for the one source file of a
// program that includes this. Sanitizers replace them themselves.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include <malloc.h>

namespace scarce_memory {

// How many allocations of this thread succeed before all others fail; negative: all succeed.
inline thread_local int until_none_is_left = -1;

// Allocations of all threads that have not been given back. Relaxed: who compares has joined the threads.
inline std::atomic<long> in_use{0};

// Of the thread that makes it, while it lives.
class allowance {
 public:
  explicit allowance(int allocations) noexcept { until_none_is_left = allocations; }
  allowance(allowance const&) = delete;
  ~allowance() { until_none_is_left = -1; }
};

// Kept apart from the operators, so that compilers do not pair malloc with delete and warn.
__attribute__((noinline)) inline void* take(std::size_t bytes, std::size_t alignment) {
  if (until_none_is_left == 0) throw std::bad_alloc();
  if (until_none_is_left > 0) --until_none_is_left;
  void* const p = std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
  if (p == nullptr) throw std::bad_alloc();
  in_use.fetch_add(1, std::memory_order_relaxed);
  return p;
}
__attribute__((noinline)) inline void give(void* p) noexcept {
  if (p == nullptr) return;
  in_use.fetch_sub(1, std::memory_order_relaxed);
  std::memset(p, 0xa5, malloc_usable_size(p));  // who still refers to it shall not find what was there
  std::free(p);
}

}  // namespace scarce_memory

void* operator new(std::size_t bytes) { return scarce_memory::take(bytes, 16); }
void* operator new[](std::size_t bytes) { return scarce_memory::take(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return scarce_memory::take(bytes, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { scarce_memory::give(p); }
void operator delete[](void* p) noexcept { scarce_memory::give(p); }
void operator delete(void* p, std::size_t) noexcept { scarce_memory::give(p); }
void operator delete[](void* p, std::size_t) noexcept { scarce_memory::give(p); }
void operator delete(void* p, std::align_val_t) noexcept { scarce_memory::give(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { scarce_memory::give(p); }
