// SPDX-License-Identifier: Apache-2.0
// Threads of one process that sleep, each with a communicator of its own: what one does for another wakes it.
#include <vector>

#include <doctest/doctest.h>

#include "transport/wired.hpp"
#include "watchdog.hpp"

namespace {

using collx::transport::tcp;

constexpr std::size_t bytes = 8 << 20;  // more than a socket holds

}  // namespace

TEST_CASE("tcp: who sleeps until the kernel has a message is woken when another thread has written it") {
  watchdog dog;
  collx::transport::tcp_settings chosen;
  chosen.common.timeout_us = 60'000'000;
  chosen.common.staging_bytes = 2 * bytes;
  wired::cables all(2);
  auto sender = tcp::join<tcp>(0, 2, chosen, all[0]);
  auto receiver = tcp::join<tcp>(1, 2, chosen, all[1]);
  // A second communicator of rank 0, as another thread would have it.
  auto& world = sender.world();
  using membership = tcp::membership;
  auto other = membership::reserve(sender.engine(), 0, 1);
  collx::array<collx::rank_t> alone(1);
  collx::array<std::uint64_t> tokens(1);
  tokens[0] = other.token;
  world.keep();
  collx::communicator<tcp> second(
      &world, membership::assemble(sender.engine(), std::move(alone), 0, tokens, std::move(other)));

  auto& mine = sender.engine().endpoint();
  auto& its = receiver.engine().endpoint();
  auto& helper = second.engine().endpoint();
  std::vector<std::byte> payload(bytes, std::byte{7}), wanted(bytes);
  its.expect(0, 0, wanted.data(), bytes);
  mine.send(0, 1, payload.data(), bytes, collx::transport::handover::in_place);
  for (int i = 0; i < 100; ++i) mine.progress();
  REQUIRE(mine.unread_by(0) == 1);  // a part of it does not fit
  REQUIRE(mine.prepare_to_sleep());
  collx::transport::arrival what{};
  while (!its.arrived(0, 0, what)) {
    its.progress();
    helper.progress();
  }
  for (int i = 0; i < 100; ++i) helper.progress();  // nothing is left that a look would find
  CHECK(mine.sleep(60'000'000));
  CHECK(mine.unread_by(0) == collx::no_rank);
  its.consume(0, 0);
}
