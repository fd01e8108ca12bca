// SPDX-License-Identifier: Apache-2.0
// The store of rank 0, whose visitors' connections a forked process has copies of.
// component: tcp
#include <doctest/doctest.h>

#include "bootstrap/meeting_process.hpp"
#include "collx/bootstrap/store.hpp"
#include "net/sockets_copied.hpp"

using namespace meeting;

TEST_CASE("store: who leaves rank 0 while a forked process has a copy of his connection is gone") {
  net::owned_fd listening = net::listen_at(net::address::loopback(0), {});
  net::address const at = net::local_address(listening.get());
  bootstrap::registration mine;
  mine.entry = {at, 7};
  mine.tree_gate = at;
  bootstrap::store serves(
      net::gate(std::move(listening), keys(), {0, 2, net::mask_of(net::purpose::store), 1}), 2, mine, 1,
      now_us() + long_us);
  net::caller one(at, {net::purpose::store, 1, 0, 2}, keys(), {}, now_us() + long_us);
  while (one.progress() == status::pending) serves.progress();
  REQUIRE(one.progress() == status::ok);
  while (serves.door().count().welcomed == 0) serves.progress();
  net::owned_fd const left = one.take();
  net::sockets_copied const forked;
  REQUIRE(shutdown(left.get(), SHUT_WR) == 0);
  REQUIRE(net::ready_before(serves.fd(), POLLIN, now_us() + long_us));
  serves.progress();
  CHECK_FALSE(net::ready_before(serves.fd(), POLLIN, now_us() + 50'000));
}
