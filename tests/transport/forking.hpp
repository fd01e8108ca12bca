// SPDX-License-Identifier: Apache-2.0
// A child that a rank forks.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <utility>

// Whether a child that does this, and then ends, has ended well by the time this returns.
template <class F>
[[nodiscard]] bool child_does(F const& f) {
  pid_t const child = fork();
  if (child == 0) {
    f();
    _exit(0);
  }
  int how = -1;
  return waitpid(child, &how, 0) == child && how == 0;
}

// The same of one that destroys what it is given.
[[nodiscard]] bool dies_with(auto& what) {
  return child_does([&] { auto const copy = std::move(what); });
}
