// SPDX-License-Identifier: Apache-2.0
// An epoll set, which is itself a descriptor that fits into another one.
#pragma once

#include <sys/epoll.h>

#include "collx/core/error.hpp"
#include "collx/net/fd.hpp"

namespace collx::inline abi_1::net {

// After add() of a gate has failed: the system has no memory for it, or its user has as many watches as he
// may.
[[noreturn]] COLLX_COLD inline void throw_unwatched_gate() {
  throw error(status::system_failure,
              "a rank cannot watch its gate; raise the sysctl fs.epoll.max_user_watches");
}

class poller {
 public:
  // No set: its descriptor is -1.
  poller() = default;

  // Throws error (system_failure) if the system has no descriptors left.
  [[nodiscard]] COLLX_COLD static poller create() {
    poller made;
    made.set_.reset(epoll_create1(EPOLL_CLOEXEC));
    if (!made.set_)
      throw error(status::system_failure, "no descriptor is left; raise their limit (ulimit -n)");
    return made;
  }

  [[nodiscard]] int fd() const noexcept { return set_.get(); }

  // Readable is always watched for; level-triggered. A closed descriptor leaves the set by itself, if no copy
  // of it is open.
  [[nodiscard]] bool add(int fd, std::uint64_t tag) noexcept {
    return control(EPOLL_CTL_ADD, fd, tag, false);
  }
  bool watch_writable(int fd, std::uint64_t tag, bool also) noexcept {
    return control(EPOLL_CTL_MOD, fd, tag, also);
  }
  void remove(int fd) noexcept { (void)epoll_ctl(set_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  // What is ready now, at most `Count` of it. Does not wait.
  template <std::size_t Count>
  struct batch {
    epoll_event events[Count];
    int count;
    [[nodiscard]] epoll_event const* begin() const noexcept { return events; }
    [[nodiscard]] epoll_event const* end() const noexcept { return events + count; }
  };
  template <std::size_t Count>
  [[nodiscard]] batch<Count> ready() const noexcept {
    batch<Count> now;
    int const count = epoll_wait(set_.get(), now.events, static_cast<int>(Count), 0);
    now.count = count < 0 ? 0 : count;
    return now;
  }

 private:
  bool control(int what, int fd, std::uint64_t tag, bool writable) noexcept {
    epoll_event wanted{};
    wanted.events = EPOLLIN | (writable ? static_cast<std::uint32_t>(EPOLLOUT) : 0u);
    wanted.data.u64 = tag;
    return epoll_ctl(set_.get(), what, fd, &wanted) == 0;
  }

  owned_fd set_;
};

}  // namespace collx::inline abi_1::net
