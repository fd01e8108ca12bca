// SPDX-License-Identifier: Apache-2.0
// A process in which nothing more can be opened, for a while.
#pragma once

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

class without_descriptors {
 public:
  without_descriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    int const lowest = eventfd(0, EFD_CLOEXEC);
    close(lowest);
    rlimit const none{static_cast<rlim_t>(lowest), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  without_descriptors(without_descriptors const&) = delete;
  ~without_descriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};
