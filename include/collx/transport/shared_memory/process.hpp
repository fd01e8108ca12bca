// SPDX-License-Identifier: Apache-2.0
// Whether another process still runs: told by a descriptor of the process itself, so that a new
// process with an old number is never taken for the old one.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

// Watches one process.
class process_watch {
 public:
  process_watch() = default;
  process_watch(process_watch const&) = delete;
  ~process_watch() {
    if (fd_ >= 0) close(fd_);
  }

  // True once the process has ended, also while its parent has not yet asked for its exit status.
  [[nodiscard]] bool ended(std::int32_t process, std::uint64_t started) noexcept {
    if (gone_) return true;
    if (fd_ < 0 && !open_for(process, started)) return gone_;
    pollfd ready{fd_, POLLIN, 0};
    return gone_ = poll(&ready, 1, 0) == 1;
  }

  // Whether it runs, as far as the kernel can tell, of a process that ended() has been asked about before.
  // Remembers nothing, so that several threads may ask.
  [[nodiscard]] bool runs() const noexcept {
    pollfd ready{fd_, POLLIN, 0};
    return fd_ < 0 || poll(&ready, 1, 0) == 0;
  }

 private:
  // False where there is no such process any more, or the kernel cannot tell now: the next question may be
  // answered, and the deadline tells in the end.
  [[nodiscard]] bool open_for(std::int32_t process, std::uint64_t started) noexcept {
    fd_ = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    bool const is_gone = fd_ < 0 && errno == ESRCH;
    // The number may have been given to a new process before the descriptor was opened. Also asked where
    // there is none, because a sandbox refuses the call: /proc tells of a process that has been waited for.
    std::uint64_t const found = is_gone ? 0 : start_time(process);
    gone_ = is_gone || (found != started && found != not_told && started != not_told);
    if (fd_ >= 0 && (gone_ || found == not_told)) {
      close(fd_);
      fd_ = -1;
    }
    return fd_ >= 0;
  }

  int fd_ = -1;
  bool gone_ = false;
};

}  // namespace collx::inline abi_1::transport::shared_memory
