// SPDX-License-Identifier: Apache-2.0
// Whom a rank blames whose threads wait for several peers at a time.
#include <atomic>
#include <memory>
#include <span>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "collx/transport/sockets/suspicion.hpp"
#include "transport/wired.hpp"

using collx::no_rank;
using collx::transport::sockets::suspicions;

namespace {

constexpr std::uint64_t deadline_us = 8'000'000, period_us = 1'000'000;

// Both threads look again and again for so long. Returns how many questions are due to the first's peer.
int wait_together(suspicions& mine, std::uint64_t from_us, std::uint64_t until_us) {
  int due = 0;
  for (std::uint64_t now = from_us; now < until_us; now += period_us / 10) {
    due += mine.still_waits(1, now, deadline_us);
    if (mine.still_waits(2, now, deadline_us)) mine.hear(2, 5);  // that one answers
  }
  return due;
}

}  // namespace

TEST_CASE("suspicions: each of two threads asks its own peer, and blames whom that one's silence says") {
  suspicions mine;
  CHECK(wait_together(mine, 1, 5 * period_us) == 4);
  std::uint64_t const now = 5 * period_us;
  CHECK(mine.blames_for(1, now) == 1);  // has been asked, and is silent
  CHECK(mine.blames_for(2, now) == 5);
  CHECK(mine.blames_for(3, now) == no_rank);
  // A peer that asks is told of somebody else.
  CHECK(mine.blames_to(1, now) == 5);
  CHECK(mine.blames_to(5, now) == 1);
  CHECK(mine.blames_to(1, now + deadline_us) == no_rank);  // both waits are over
}

TEST_CASE("suspicions: the newest waits are known, however many there have been") {
  suspicions mine;
  for (collx::rank_t peer = 0; peer < 100; ++peer)
    CHECK_FALSE(mine.still_waits(peer, 1 + static_cast<std::uint64_t>(peer), deadline_us));
  for (collx::rank_t peer = 92; peer < 100; ++peer) CHECK(mine.blames_for(peer, 200) == peer);
  CHECK(mine.blames_for(91, 200) == no_rank);
}

TEST_CASE("suspicions: what was said in a wait that is over says nothing of the next one") {
  suspicions mine;
  CHECK_FALSE(mine.still_waits(1, 1, deadline_us));
  CHECK(mine.still_waits(1, 1 + period_us, deadline_us));
  mine.hear(1, 5);
  CHECK(mine.blames_for(1, 1 + period_us) == 5);
  std::uint64_t const later_us = 1 + deadline_us;
  CHECK_FALSE(mine.still_waits(1, later_us, deadline_us));
  CHECK(mine.blames_for(1, later_us) == 1);
}

namespace {

// Three ranks: 0 waits for 1, that one for 2, and 2 makes no call. prepare(world) -> the communicator they
// wait on. Returns what rank 0 says of it.
template <class Prepare>
collx::failure_report said_of_a_chain(Prepare const& prepare) {
  collx::transport::tcp_settings chosen;
  chosen.common = {.timeout_us = 60'000'000, .staging_bytes = 64 * 1024};
  std::atomic<bool> is_over{false};
  collx::failure_report seen;
  wired::on_wired_threads(3, chosen, [&](collx::communicator<collx::transport::tcp>& world) {
    auto comm = prepare(world);
    int value = 0;
    if (world.rank() == 2) {
      while (!is_over) sched_yield();
      return;
    }
    try {
      collx::receive(*comm, std::span(&value, 1), world.rank() + 1);
    } catch (collx::error const& failure) {
      if (world.rank() == 0) seen = failure.report();
    }
    if (world.rank() == 0) is_over = true;
  });
  return seen;
}

}  // namespace

TEST_CASE("tcp: who is stuck is found within a time-out of a communicator's own") {
  collx::failure_report const seen = said_of_a_chain([](auto& world) {
    if (world.rank() == 0) world.timeout_us(2'000'000);
    return &world;
  });
  CHECK(seen.code == collx::status::timeout);
  CHECK(seen.peer == 2);  // whom rank 1 waits for
}

TEST_CASE("tcp: who is stuck is found within the time-out of the communicator it was split from") {
  collx::failure_report const seen = said_of_a_chain([](auto& world) {
    if (world.rank() == 0) world.timeout_us(2'000'000);
    return std::make_unique<collx::communicator<collx::transport::tcp>>(world.split(0, world.rank()));
  });
  CHECK(seen.code == collx::status::timeout);
  CHECK(seen.peer == 2);
}
