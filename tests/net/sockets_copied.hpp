// SPDX-License-Identifier: Apache-2.0
// A process that was forked, and so has a copy of every socket that is open now, for as long as this lives.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace collx::net {

class sockets_copied {
 public:
  sockets_copied() : id_(fork()) {
    REQUIRE(id_ >= 0);  // or kill() would mean everybody
    if (id_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  sockets_copied(sockets_copied const&) = delete;
  ~sockets_copied() {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }

 private:
  pid_t id_;
};

}  // namespace collx::net
