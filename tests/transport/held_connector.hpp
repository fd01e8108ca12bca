// SPDX-License-Identifier: Apache-2.0
// What gives a rank its connections with another one that a test plays.
#pragma once

#include <utility>

#include <sys/eventfd.h>

#include "collx/transport/flows/flow_choice.hpp"
#include "collx/transport/sockets/connector.hpp"

// Gives a rank its connections with rank 1, the one for control first, once they are made.
class held_connector : public collx::transport::sockets::connector {
 public:
  explicit held_connector(int connections = 2) : connections_(connections) {}
  void dial(collx::rank_t, int, int) noexcept override {}
  bool poll(collx::transport::sockets::connection& next) noexcept override {
    if (given_ == connections_) return false;
    next = {1, given_, std::move(ours_[given_])};
    return ++given_, true;
  }
  int fd() const noexcept override { return bell_.get(); }
  bool is_dialling() const noexcept override { return given_ < connections_; }
  collx::status outlook(collx::rank_t) noexcept override { return collx::status::ok; }

 protected:
  collx::net::owned_fd ours_[1 + collx::transport::flows::flows_max];

 private:
  int connections_;
  int given_ = 0;
  collx::net::owned_fd bell_{eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC)};
};
