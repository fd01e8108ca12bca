// SPDX-License-Identifier: Apache-2.0
// A gate whose guests' connections a forked process has copies of.
// component: tcp
// thread sanitizer: no, there is one thread
#include <doctest/doctest.h>

#include "net/at_a_gate.hpp"
#include "net/sockets_copied.hpp"

TEST_CASE("who is dropped while a forked process has a copy of his connection is heard of no more") {
  using namespace at_a_gate;
  gate door = open_gate();
  guest who;
  owned_fd const rude = stranger(door.where());
  while (door.in_handshake() == 0) CHECK_FALSE(door.poll(who));
  sockets_copied const forked;
  say(rude, "nonsense");
  while (door.count().refused == 0) CHECK_FALSE(door.poll(who));
  say(rude, "and more");
  CHECK_FALSE(ready_before(door.fd(), POLLIN, now_us() + 50'000));
  CHECK_FALSE(door.poll(who));
  CHECK(door.count().left == 0);
  REQUIRE(door.in_handshake() == 0);
  caller one = call(door.where(), 1);
  CHECK(let_in(door, one, who) == status::ok);
}
