// SPDX-License-Identifier: Apache-2.0
// Descriptors: one that closes itself, and a wait for one that has a deadline.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "collx/core/clock.hpp"

namespace collx::inline abi_1::net {

// A descriptor that closes itself; -1: none.
class owned_fd {
 public:
  owned_fd() = default;
  explicit owned_fd(int fd) noexcept : fd_(fd) {}
  owned_fd(owned_fd&& other) noexcept : fd_(other.release()) {}
  owned_fd& operator=(owned_fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  owned_fd(owned_fd const&) = delete;
  ~owned_fd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  // What it held, which is the caller's to close.
  [[nodiscard]] int release() noexcept {
    int const held = fd_;
    fd_ = -1;
    return held;
  }
  // Closes what it holds, keeping errno, and holds `fd` from now on.
  void reset(int fd = -1) noexcept {
    int const why = errno;
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
    errno = why;
  }

 private:
  int fd_ = -1;
};

// Waits until fd is ready for `events` or the deadline has passed; false then.
[[nodiscard]] inline bool ready_before(int fd, short events, std::uint64_t deadline_us) noexcept {
  for (;;) {
    std::uint64_t const now = now_us();
    if (now >= deadline_us) return false;
    pollfd what{fd, events, 0};
    std::uint64_t const rest_ms = (deadline_us - now + 999) / 1000;
    int const got = ::poll(&what, 1, static_cast<int>(rest_ms < 1000 ? rest_ms : 1000));
    if (got > 0) return true;
    if (got < 0 && errno != EINTR) return false;
  }
}

}  // namespace collx::inline abi_1::net
