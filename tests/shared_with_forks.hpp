// SPDX-License-Identifier: Apache-2.0
// What ranks of a test tell each other past the library, be they threads or processes: most often, how far
// they have come. A collective says that all have called it, and not that all have returned; who provokes a
// failure must wait for that, or it hits calls that were to succeed.
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <new>

// An object that this process and those that it forks later have in common.
template <class T>
class shared_with_forks {
 public:
  shared_with_forks()
      : page_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (page_ == MAP_FAILED) throw std::bad_alloc();
    value_ = ::new (page_) T{};
  }
  shared_with_forks(shared_with_forks const&) = delete;
  ~shared_with_forks() { munmap(page_, sizeof(T)); }

  [[nodiscard]] T& operator*() const noexcept { return *value_; }
  [[nodiscard]] T* operator->() const noexcept { return value_; }

 private:
  void* page_;
  T* value_;
};

// How many have come to a point of a test.
class arrivals {
 public:
  void come() noexcept { count_.fetch_add(1); }
  // The caller's watchdog ends it where somebody never comes.
  void wait_for(int count) const noexcept {
    while (count_.load() < count) sched_yield();
  }

 private:
  std::atomic<int> count_{0};
};
