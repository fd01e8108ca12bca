// SPDX-License-Identifier: Apache-2.0
// The connections of a rank with another one that a test plays: pairs of sockets, of which it holds one end.
#pragma once

#include <doctest/doctest.h>
#include <sys/socket.h>

#include "transport/held_connector.hpp"

// A rank that talks to this test, which holds the other end of each of its connections.
class held_ends : public held_connector {
 public:
  template <int connections>
  explicit held_ends(int (&theirs)[connections]) : held_connector(connections) {
    for (int f = 0; f < connections; ++f) {
      int both[2];
      REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
      int const little = 64 * 1024;  // whatever this system gives to all
      REQUIRE(setsockopt(both[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof little) == 0);
      ours_[f].reset(both[0]);
      theirs[f] = both[1];
    }
  }
};
