// SPDX-License-Identifier: Apache-2.0
// A system that refuses to watch further descriptors, by replacing epoll_ctl: for the one source file of a
// program that includes this.
#pragma once

#include <cerrno>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace scarce_watches {

inline bool none_is_left = false;

// While it lives.
class shortage {
 public:
  shortage() noexcept { none_is_left = true; }
  shortage(shortage const&) = delete;
  ~shortage() { none_is_left = false; }
};

}  // namespace scarce_watches

extern "C" int epoll_ctl(int set, int what, int fd, epoll_event* event) noexcept {
  if (scarce_watches::none_is_left && what == EPOLL_CTL_ADD) return errno = ENOSPC, -1;
  return static_cast<int>(syscall(SYS_epoll_ctl, set, what, fd, event));
}
