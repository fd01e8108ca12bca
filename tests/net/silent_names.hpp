// SPDX-License-Identifier: Apache-2.0
// A name service that knows addresses, and of names says nothing until the test is done with it.
#pragma once

#include <sched.h>

#include <atomic>

#include "collx/net/resolve.hpp"

class silent_names {
 public:
  silent_names() { may_answer = false; }
  silent_names(silent_names const&) = delete;
  // Waits for all who ask, so that none of them outlives the test.
  ~silent_names() {
    may_answer = true;
    may_answer.notify_all();
    for (int left = asking; left != 0; left = asking) asking.wait(left);
  }

  [[nodiscard]] int who_ask() const { return asking; }

  // Whether that many ask, within a minute. The thread of a call whose deadline had passed may begin only
  // now, and would count itself in the next test.
  [[nodiscard]] bool come(int count) const {
    std::uint64_t const deadline_us = collx::now_us() + 60'000'000;
    while (asking != count && collx::now_us() < deadline_us) sched_yield();
    return asking == count;
  }

  static collx::net::known_addresses ask(char const* host, std::uint16_t port, int flags) {
    if ((flags & AI_NUMERICHOST) != 0) return collx::net::ask_system(host, port, flags);
    ++asking;
    may_answer.wait(false);
    --asking;
    asking.notify_all();
    return {};
  }

 private:
  static inline std::atomic<bool> may_answer = false;
  static inline std::atomic<int> asking = 0;
};
