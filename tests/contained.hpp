// SPDX-License-Identifier: Apache-2.0
// A process in namespaces of its own, as one of a container is. It takes the right to make them.
#pragma once

#include <utility>

#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

class contained {
 public:
  static constexpr int no_right = 77;  // how it ends that may not make such namespaces

  // Calls f(), which returns an exit code, in a process of new `namespaces` (CLONE_NEW...); with
  // CLONE_NEWPID among them it is the first of its numbers.
  template <class F>
  contained(int namespaces, F const& f) : pid_(fork()) {
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(namespaces) != 0) _exit(no_right);
    pid_t const inside = fork();  // only children get numbers of the new namespace
    if (inside != 0) _exit(end_of(inside));
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(f());
  }
  contained(contained const&) = delete;
  ~contained() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  // Waits for its end; as shells say it.
  [[nodiscard]] int ended() { return end_of(std::exchange(pid_, 0)); }

 private:
  [[nodiscard]] static int end_of(pid_t process) {
    int how = 0;
    if (process < 0 || waitpid(process, &how, 0) != process) return 1;
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
  }

  pid_t pid_;
};

// Whether it ended as it was to; visibly skipped where this process may not make such namespaces.
inline void check_contained(int code) {
  if (code == contained::no_right) MESSAGE("SKIPPED: it takes the right to make namespaces");
  else CHECK(code == 0);
}
