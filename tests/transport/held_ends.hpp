// SPDX-License-Identifier: Apache-2.0
// Both connections of a rank with another one that a test plays: pairs of sockets, of which it holds one end.
#pragma once

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "collx/transport/tcp.hpp"

// Gives a rank its connections with rank 1, the one for control first, once they are made.
class held_connector : public collx::transport::sockets::connector {
 public:
  void dial(collx::rank_t, int, int) noexcept override {}
  bool poll(collx::transport::sockets::connection& next) noexcept override {
    if (given_ == 2) return false;
    next = {1, given_, std::move(ours_[given_])};
    return ++given_, true;
  }
  int fd() const noexcept override { return bell_.get(); }
  bool is_dialling() const noexcept override { return given_ < 2; }
  collx::status outlook(collx::rank_t) noexcept override { return collx::status::ok; }

 protected:
  collx::net::owned_fd ours_[2];

 private:
  int given_ = 0;
  collx::net::owned_fd bell_{eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC)};
};

// A rank that talks to this test, which holds the other end of each of its connections.
class held_ends : public held_connector {
 public:
  explicit held_ends(int (&theirs)[2]) {
    for (int f = 0; f < 2; ++f) {
      int both[2];
      REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
      int const little = 64 * 1024;  // whatever this system gives to all
      REQUIRE(setsockopt(both[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof little) == 0);
      ours_[f].reset(both[0]);
      theirs[f] = both[1];
    }
  }
};
