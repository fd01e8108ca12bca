// SPDX-License-Identifier: Apache-2.0
// Whether another process still runs: told by a descriptor of the process itself, so that a new
// process with an old number is never taken for the old one.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collx/core/atomic_word.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1::transport::shared_memory {

// No answer, as where this process has no descriptor left to ask with.
inline constexpr std::uint64_t not_told = ~std::uint64_t{0};

// A field of /proc/PID/stat behind the name, from 3 on; 0 if the process is gone.
[[nodiscard]] inline std::uint64_t stat_field(std::int32_t process, int number) noexcept {
  char path[64], text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", process);
  int const fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? 0 : not_told;
  ssize_t const got = read(fd, text, sizeof text - 1);
  int const problem = errno;
  close(fd);
  if (got <= 0) return got == 0 || problem == ESRCH ? 0 : not_told;
  text[got] = '\0';
  // The name, field 2, is in parentheses and may hold anything: count fields behind the last one.
  char const* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < number; ++field) at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

// When a process was started, in clock ticks since boot; 0 if it is gone, or not_told. A pid together with
// this names a process for good.
[[nodiscard]] inline std::uint64_t start_time(std::int32_t process) noexcept {
  return stat_field(process, 22);
}
// 0: none, or not told.
[[nodiscard]] inline std::int32_t parent_of(std::int32_t process) noexcept {
  std::uint64_t const told = stat_field(process, 4);
  return told == not_told ? 0 : static_cast<std::int32_t>(told);
}

// The namespace (of a container) whose numbers of processes this one gives to others and is given; in another
// one they are those of other processes. 0: not told.
[[nodiscard]] COLLX_COLD inline std::uint64_t process_namespace() noexcept {
  struct stat found {};
  return stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

// Watches one process. Several threads may ask, of communicators of their own: a descriptor that others can
// see stays open as long as the watch lives.
class process_watch {
 public:
  process_watch() = default;
  process_watch(process_watch const&) = delete;
  ~process_watch() {
    // Relaxed: nobody asks any more.
    if (int const fd = fd_.load(std::memory_order_relaxed); fd >= 0) close(fd);
  }

  // True once the process has ended, also while its parent has not yet asked for its exit status.
  [[nodiscard]] bool ended(std::int32_t process, std::uint64_t started) noexcept {
    // Relaxed, here and below: it is only ever set, and nothing else is learnt from it.
    if (gone_.load(std::memory_order_relaxed)) return true;
    int fd = fd_.load(std::memory_order_acquire);
    if (fd < 0) fd = open_for(process, started);
    if (fd >= 0 && has_ended(fd)) gone_.store(true, std::memory_order_relaxed);
    return gone_.load(std::memory_order_relaxed);
  }

  // Whether it runs, as far as the kernel can tell, of a process that ended() has been asked about before.
  // Remembers nothing.
  [[nodiscard]] bool runs() const noexcept {
    int const fd = fd_.load(std::memory_order_acquire);
    return fd < 0 || !has_ended(fd);
  }

 private:
  // Readable, and not some trouble with the question.
  [[nodiscard]] static bool has_ended(int fd) noexcept {
    pollfd ready{fd, POLLIN, 0};
    return poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0;
  }

  // The descriptor; -1 where there is no such process any more, or the kernel cannot tell now: the next
  // question may be answered, and the deadline tells in the end.
  [[nodiscard]] int open_for(std::int32_t process, std::uint64_t started) noexcept {
    int const fd = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    bool const is_gone = fd < 0 && errno == ESRCH;
    // The number may have been given to a new process before the descriptor was opened. Also asked where
    // there is none, because a sandbox refuses the call: /proc tells of a process that has been waited for.
    std::uint64_t const found = is_gone ? 0 : start_time(process);
    // One that runs all the same is hidden (/proc with hidepid): its number has to do.
    bool const is_hidden =
        found == 0 && !is_gone && (fd >= 0 ? !has_ended(fd) : kill(process, 0) == 0 || errno != ESRCH);
    bool const is_other = found != started && found != not_told && started != not_told && !is_hidden;
    if (is_gone || is_other) gone_.store(true, std::memory_order_relaxed);
    if (fd < 0) return -1;
    bool const is_right = !is_other && found != not_told;
    int others = -1;
    // Release: who sees the number may ask it. Acquire: another thread was here first, and its number counts.
    if (is_right &&
        fd_.compare_exchange_strong(others, fd, std::memory_order_release, std::memory_order_acquire))
      return fd;
    close(fd);
    return others;
  }

  atomic_word<int> fd_{-1};
  atomic_word<bool> gone_{false};
};

}  // namespace collx::inline abi_1::transport::shared_memory
