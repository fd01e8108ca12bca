// SPDX-License-Identifier: Apache-2.0
// How a rank of `tcp` ends: it stays until its last words are on the peers' machines, and no longer.
#include <chrono>
#include <optional>

#include <doctest/doctest.h>

#include "wired.hpp"

namespace {

using collx::transport::tcp;

}  // namespace

TEST_CASE("a rank joined by a pair of sockets does not wait until its peer has read its goodbye") {
  using clock = std::chrono::steady_clock;
  watchdog dog;
  collx::transport::tcp_settings chosen;
  chosen.common.timeout_us = 80'000'000;
  wired::cables all(2);
  std::optional leaves = tcp::join<tcp>(0, 2, chosen, 2, all[0]);
  // Does nothing at all, and is there: nobody closes the connection.
  collx::communicator<tcp> const stays = tcp::join<tcp>(1, 2, chosen, 2, all[1]);
  auto const begin = clock::now();
  leaves.reset();
  CHECK(clock::now() - begin < std::chrono::seconds(40));
}
