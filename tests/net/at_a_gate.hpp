// SPDX-License-Identifier: Apache-2.0
// A gate of a job, a caller that belongs to it, and a stranger.
#pragma once

#include <cstring>
#include <string>

#include <doctest/doctest.h>

#include "collx/net/caller.hpp"
#include "collx/net/gate.hpp"

namespace at_a_gate {

using namespace collx::net;
using collx::now_us;
using collx::rank_t;
using collx::status;

inline constexpr std::uint64_t long_us = 60'000'000;

inline credentials keys(char const* text = "the secret of these tests") {
  return {secret::of(std::span(text, std::strlen(text))), 7};
}

inline gate open_gate(std::uint64_t patience_us = long_us, std::uint8_t version = 4) {
  return {listen_at(address::loopback(0, version), {}),
          keys(),
          expectation{0, 100, mask_of(purpose::link), 4},
          {},
          patience_us};
}

inline caller call(address const& where, rank_t from, credentials const& with = keys(),
            std::uint64_t timeout_us = long_us, unanswered policy = unanswered::retry) {
  return {where, introduction{purpose::link, from, 0, 100, 1, 4}, with, {}, now_us() + timeout_us, policy};
}

// A connection that proves nothing.
inline owned_fd stranger(address const& where) {
  owned_fd fd = begin_connect(where, {});
  REQUIRE(fd);
  REQUIRE(ready_before(fd.get(), POLLOUT, now_us() + long_us));
  return fd;
}

inline void say(owned_fd const& to, std::string const& text) {
  (void)!send(to.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Runs both until the caller has ended.
inline status let_in(gate& by, caller& one, guest& who) {
  bool came = false;
  for (std::uint64_t const until = now_us() + long_us; now_us() < until;) {
    status const now = one.progress();
    came = by.poll(who) || came;
    if (now != status::pending && (now != status::ok || came)) return now;
  }
  return status::timeout;
}

}  // namespace at_a_gate
