// SPDX-License-Identifier: Apache-2.0
// Counts calls of operator new and delete, per thread, by replacing them: for the one source file of a
// program that includes this.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t calls_of_new = 0, calls_of_delete = 0;

// Kept apart from the operators, so that compilers do not pair malloc with delete and warn.
__attribute__((noinline)) void* take(std::size_t bytes, std::size_t alignment, bool may_throw = true) {
  ++calls_of_new;
  std::size_t const rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const p = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (p == nullptr && may_throw) throw std::bad_alloc();
  return p;
}
__attribute__((noinline)) void give(void* p) noexcept {
  if (p != nullptr) ++calls_of_delete;
  std::free(p);
}

}  // namespace

void* operator new(std::size_t bytes) { return take(bytes, 16); }
void* operator new[](std::size_t bytes) { return take(bytes, 16); }
void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept { return take(bytes, 16, false); }
void* operator new[](std::size_t bytes, std::nothrow_t const&) noexcept { return take(bytes, 16, false); }
void* operator new(std::size_t bytes, std::align_val_t a) { return take(bytes, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return take(bytes, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { give(p); }
void operator delete[](void* p) noexcept { give(p); }
void operator delete(void* p, std::nothrow_t const&) noexcept { give(p); }
void operator delete[](void* p, std::nothrow_t const&) noexcept { give(p); }
void operator delete(void* p, std::size_t) noexcept { give(p); }
void operator delete[](void* p, std::size_t) noexcept { give(p); }
void operator delete(void* p, std::align_val_t) noexcept { give(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { give(p); }
