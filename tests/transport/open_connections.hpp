// SPDX-License-Identifier: Apache-2.0
// The TCP sockets that a process has open.
#pragma once

#include <sys/socket.h>

#include "collx/net/socket.hpp"

// Calls f(fd, port, listens) for each.
template <class F>
void for_each_open_connection(F const& f) {
  for (int fd = 3; fd < 300; ++fd) {
    auto const here = collx::net::local_address(fd);
    if (here.version != 4) continue;
    int listens = 0;
    socklen_t length = sizeof listens;
    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
    f(fd, here.port, listens != 0);
  }
}
