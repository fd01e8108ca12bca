// SPDX-License-Identifier: Apache-2.0
// A mutual exclusion lock for set-up code. <mutex> brings <chrono> with it, which alone costs a sixth
// of what <span>, <atomic> and <vector> cost together; this costs nothing.
#pragma once

#include <pthread.h>

#include "collx/core/config.hpp"

namespace collx::inline abi_1 {

class posix_mutex {
 public:
  posix_mutex() noexcept = default;
  posix_mutex(posix_mutex const&) = delete;
  ~posix_mutex() { pthread_mutex_destroy(&handle_); }

  // Neither fails on a normal mutex that is used as below.
  void lock() noexcept { pthread_mutex_lock(&handle_); }
  void unlock() noexcept { pthread_mutex_unlock(&handle_); }

 private:
  pthread_mutex_t handle_ = PTHREAD_MUTEX_INITIALIZER;
};

// Holds a mutex for as long as it lives.
template <class Mutex = posix_mutex>
class posix_lock {
 public:
  explicit posix_lock(Mutex& m) noexcept : mutex_(m) { mutex_.lock(); }
  posix_lock(posix_lock const&) = delete;
  ~posix_lock() { mutex_.unlock(); }

 private:
  Mutex& mutex_;
};

}  // namespace collx::inline abi_1
