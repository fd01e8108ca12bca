// SPDX-License-Identifier: Apache-2.0
// Whether the system lets processes that a test forks copy each other's private memory: found out by the
// test itself, so that a transport that could do so, and does not, is no success.
#pragma once

#include <cerrno>
#include <cstdlib>

#include <doctest/doctest.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared_with_forks.hpp"

namespace system_copies {

namespace detail {

inline int word = 0;  // at the same address in all processes, and in each its own

struct scene {
  std::atomic<pid_t> process[2];
  arrivals here, tried, judged;
  std::atomic<int> done{0};  // copies that worked, of two reads and two writes
};

// One of two children of the same process, as ranks are: reads the other's word, and writes it.
inline void try_other(scene& both, int me) {
  alarm(60);  // should the other one never come: no watchdog looks after this
  word = 10 + me;
  both.process[me] = getpid();
  both.here.come();
  both.here.wait_for(2);
  int copy = 0;
  iovec const mine{&copy, sizeof copy}, theirs{&word, sizeof word};
  pid_t const other = both.process[1 - me];
  bool const read = process_vm_readv(other, &mine, 1, &theirs, 1, 0) == sizeof copy && copy == 11 - me;
  both.tried.come();
  both.tried.wait_for(2);
  copy = 20 + me;
  bool const written = process_vm_writev(other, &mine, 1, &theirs, 1, 0) == sizeof copy;
  both.judged.come();
  both.judged.wait_for(2);
  both.done += static_cast<int>(read) + static_cast<int>(written && word == 21 - me);
}

[[nodiscard]] inline bool are_permitted() {
  shared_with_forks<scene> both;
  pid_t children[2];
  for (int i = 0; i < 2; ++i) {
    children[i] = fork();
    if (children[i] < 0) std::abort();
    if (children[i] != 0) continue;
    try_other(*both, i);
    _exit(0);
  }
  for (pid_t const each : children)
    while (waitpid(each, nullptr, 0) < 0 && errno == EINTR) {
    }
  return both->done == 4;
}

}  // namespace detail

// Known before there are ranks: those inherit it.
inline bool const permitted = detail::are_permitted();

// For the process that starts the ranks: what a test checks where the system refuses is less than it says.
inline void say_if_refused() {
  if (!permitted) MESSAGE("SKIPPED: this system lets no process copy another's memory");
}

}  // namespace system_copies
