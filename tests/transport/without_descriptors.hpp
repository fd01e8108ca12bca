// SPDX-License-Identifier: Apache-2.0
// A process in which nothing more can be opened, or no more than so many, for a while.
#pragma once

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collx/core/error.hpp"

class without_descriptors {
 public:
  explicit without_descriptors(int but = 0) {
    // The sanitizer of undefined behaviour opens a pipe when it sees a class for the first time.
    try {
      throw collx::error(collx::status::ok, "made to be seen");
    } catch (collx::error const& seen) {
      (void)seen.code();
    }
    getrlimit(RLIMIT_NOFILE, &before_);
    int const lowest = eventfd(0, EFD_CLOEXEC);
    close(lowest);
    rlimit const none{static_cast<rlim_t>(lowest + but), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  without_descriptors(without_descriptors const&) = delete;
  ~without_descriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};
