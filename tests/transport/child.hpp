// SPDX-License-Identifier: Apache-2.0
// A process that a test watches.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

// A process that runs until this ends it.
class child {
 public:
  child() {
    REQUIRE(pid_ >= 0);
    if (pid_ == 0)
      for (;;) pause();
  }
  child(child const&) = delete;
  ~child() {
    if (pid_ > 0) end();
  }

  [[nodiscard]] int pid() const { return pid_; }
  // Ended, and not yet asked for its exit status.
  void kill_only() const {
    kill(pid_, SIGKILL);
    siginfo_t how{};
    waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOWAIT);
  }
  void end() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = fork();
};
