// SPDX-License-Identifier: Apache-2.0
// A rank's place in the tree after a failure: it wakes for nobody but children that are still greeting, and
// knows what has failed.
// component: tcp
#include "collx/bootstrap/tree.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "bootstrap/meeting_process.hpp"

using namespace meeting;

namespace {

constexpr bootstrap::news bad{bootstrap::news_kind::never_came, 3, 1};

// Rank 1 of a meeting, whose first child is rank 5.
struct rank_1 {
  explicit rank_1(rank_t ranks, net::protection how, net::socket_settings const& sockets = {})
      : size(ranks), protects(how), chosen(sockets) {}

  net::owned_fd door = net::listen_at(net::address::loopback(0), {});
  net::address const at = net::local_address(door.get());
  rank_t size;
  net::protection protects;
  net::socket_settings chosen;
  net::tls_context tls = net::tls_context::create();
  bootstrap::tree around{
      net::gate(std::move(door), keys(), {1, size, net::mask_of(net::purpose::tree), 1, protects}, chosen), 1,
      size, net::encrypts(protects) ? &tls : nullptr};
  net::owned_fd above;

  // Its parent, of which this is the other end.
  void meet_parent() {
    int both[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
    above.reset(both[1]);
    around.set_parent(net::line(net::owned_fd(both[0])));
  }
  // Rank 5, which is let in.
  net::caller meet_child() {
    net::introduction const fifth{net::purpose::tree, 5, 1, size, 0, 1, protects};
    net::caller call(at, fifth, keys(), chosen, now_us() + long_us);
    while (call.progress() == status::pending) (void)around.progress();
    REQUIRE(call.progress() == status::ok);
    while (around.door().count().welcomed == 0) (void)around.progress();
    return call;
  }
  // Once what has come was looked at, nothing wakes it.
  bool is_quiet() {
    for (int i = 0; i < 3; ++i) (void)around.progress();
    return !net::ready_before(around.fd(), POLLIN, now_us() + 10'000);
  }
};

void say(net::owned_fd const& to, bootstrap::news const& what) {
  std::byte text[bootstrap::news::bytes_count];
  what.encode(text);
  REQUIRE(send(to.get(), text, sizeof text, MSG_NOSIGNAL) == sizeof text);
}

}  // namespace

TEST_CASE("tree: who has bad news from its parent sleeps while a child still greets, and tells it then") {
  rank_1 one(6, net::protection::tls);
  one.meet_parent();
  net::caller call = one.meet_child();
  say(one.above, bad);
  SUBCASE("its parent says more") { say(one.above, bad); }
  SUBCASE("its parent leaves") { one.above.reset(); }
  while (one.around.progress() == status::pending) sched_yield();
  CHECK(one.around.failure().rank == bad.rank);
  CHECK(one.around.has_more_to_tell());
  CHECK(one.is_quiet());
  net::line child(call, &one.tls);
  while (child.greet() == status::pending) (void)one.around.progress();
  REQUIRE(child.has_greeted());
  while (one.around.has_more_to_tell()) (void)one.around.progress();
  std::byte text[bootstrap::news::bytes_count];
  bootstrap::news heard;
  REQUIRE(child.receive(text) == sizeof text);
  REQUIRE(bootstrap::news::decode(text, heard));
  CHECK(heard.kind == bad.kind);
  CHECK(heard.rank == bad.rank);
  CHECK(one.is_quiet());
}

TEST_CASE("tree: nor does room for the table wake who has failed") {
  net::socket_settings little;
  little.buffer_bytes = 4096;
  rank_1 one(4000, net::protection::none, little);
  one.meet_parent();
  net::caller call = one.meet_child();
  net::owned_fd const child = call.take();
  say(one.above, {});
  std::vector<std::byte> const entries(100'000);
  for (std::size_t said = 0; said < entries.size();) {
    ssize_t const n = send(one.above.get(), entries.data(), entries.size() - said, MSG_NOSIGNAL);
    if (n > 0) said += static_cast<std::size_t>(n);
    (void)one.around.progress();
  }
  while (!one.is_quiet()) {  // until the system has taken what it has room for
  }
  one.around.fail(bad);
  std::vector<std::byte> taken(200'000);
  while (net::ready_before(child.get(), POLLIN, now_us() + 50'000))
    REQUIRE(recv(child.get(), taken.data(), taken.size(), 0) > 0);
  CHECK(one.is_quiet());
}

TEST_CASE("tree: what a child said before it left counts, though the table finds the child gone") {
  rank_1 one(4000, net::protection::none);
  one.meet_parent();
  net::caller call = one.meet_child();
  net::owned_fd child = call.take();
  say(one.above, {});
  while (!net::ready_before(child.get(), POLLIN, now_us() + 1000))
    (void)one.around.progress();  // that the table comes
  // What comes from above is looked at before what the child says: it came first.
  std::vector<std::byte> const entries(1000);
  REQUIRE(send(one.above.get(), entries.data(), entries.size(), MSG_NOSIGNAL) == 1000);
  say(child, bad);
  child.reset();
  while (one.around.progress() == status::pending) sched_yield();
  CHECK(one.around.failure().kind == bad.kind);
  CHECK(one.around.failure().rank == bad.rank);
}

TEST_CASE("tree: a parent that has sent the table hears nothing more") {
  rank_1 one(6, net::protection::tls);
  one.meet_parent();
  {
    net::caller const call = one.meet_child();
    say(one.above, {});
    std::vector<std::byte> const entries(6 * bootstrap::table_entry::bytes_count);
    REQUIRE(send(one.above.get(), entries.data(), entries.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(entries.size()));
    while (!one.around.has_table()) CHECK(one.around.progress() == status::pending);
  }
  while (one.around.progress() == status::pending) sched_yield();
  CHECK(one.around.failure().rank == 5);
  CHECK_FALSE(net::ready_before(one.above.get(), POLLIN, now_us() + 10'000));
}

TEST_CASE("tree: a parent hears of all that are lost but itself") {
  rank_1 one(6, net::protection::none);
  one.meet_parent();
  SUBCASE("of that one: nothing") {
    one.around.fail({bootstrap::news_kind::left, 0, 1});
    CHECK_FALSE(net::ready_before(one.above.get(), POLLIN, now_us() + 10'000));
  }
  SUBCASE("of another: what has happened") {
    one.around.fail(bad);
    CHECK(heard<bootstrap::news>(one.above).rank == bad.rank);
  }
}
