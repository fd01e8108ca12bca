// SPDX-License-Identifier: Apache-2.0
// A connection that a rank looks at all the time is not watched for it as well: the system would take note of
// each message for nobody. Nothing is missed because of that.
// component: tcp
// thread sanitizer: no, there is one thread, and epoll_ctl is this program's own
// compiled: apart, it replaces epoll_ctl
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "transport/scarce_watches.hpp"
#include "transport/wired.hpp"
#include "watchdog.hpp"

namespace {

using collx::transport::tcp;

// Descriptors in the epoll sets of this process.
int count_watched() {
  int count = 0;
  for (auto const& each : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream about(each.path());
    for (std::string line; std::getline(about, line);) count += line.starts_with("tfd:");
  }
  return count;
}

// Two ranks of one thread. Rank 1 waits for messages of rank 0.
struct scene {
  scene() {
    take_one();  // from now on they are connected
    all = count_watched();
    expect();
    for (int i = 0; i < 200; ++i) look();
  }

  static collx::transport::tcp_settings patient() {
    collx::transport::tcp_settings chosen;
    chosen.common.timeout_us = 60'000'000;
    chosen.common.staging_bytes = 1 << 16;
    return chosen;
  }
  void send() { sender.engine().endpoint().send(0, 1, &sent, 1, collx::transport::handover::in_place); }
  void expect() { waiting().expect(0, 0, &wanted, 1); }
  bool look() {
    collx::transport::arrival what{};
    if (waiting().arrived(0, 0, what)) return true;
    waiting().progress();
    return false;
  }
  void take_one() {
    expect();
    send();
    while (!look()) sender.engine().endpoint().progress();
    waiting().consume(0, 0);
  }
  // Another communicator of rank 1, which waits for nobody.
  collx::communicator<tcp> another() {
    auto& world = receiver.world();
    using membership = tcp::membership;
    auto mine = membership::reserve(receiver.engine(), 0, 1);
    collx::array<collx::rank_t> alone(1);
    collx::array<std::uint64_t> tokens(1);
    alone[0] = 1;
    tokens[0] = mine.token;
    world.keep();
    return collx::communicator<tcp>(
        &world, membership::assemble(receiver.engine(), std::move(alone), 0, tokens, std::move(mine)));
  }
  // Naps until the message is there; false: so often in vain.
  bool naps_until_it_comes(int naps) {
    for (; naps != 0 && !look(); --naps) {
      REQUIRE(waiting().prepare_to_sleep());
      (void)waiting().sleep(60'000'000);
    }
    return look();
  }
  tcp::endpoint& waiting() { return receiver.engine().endpoint(); }

  wired::cables cables{2};
  collx::communicator<tcp> sender = tcp::join<tcp>(0, 2, patient(), cables[0]);
  collx::communicator<tcp> receiver = tcp::join<tcp>(1, 2, patient(), cables[1]);
  std::byte sent{7}, wanted{};
  int all = 0;
};

}  // namespace

TEST_CASE("tcp: a connection that is looked at all the time is not watched until its rank sleeps") {
  watchdog dog;
  scene s;
  CHECK(count_watched() == s.all - 1);
  REQUIRE(s.waiting().prepare_to_sleep());
  CHECK(count_watched() == s.all);
  s.send();
  CHECK(s.waiting().sleep(60'000'000));
  CHECK(s.look());
}

TEST_CASE("tcp: who naps and looks in turn goes on being woken") {
  watchdog dog;
  scene s;
  REQUIRE(s.waiting().prepare_to_sleep());
  for (int i = 0; i < 200; ++i) {
    (void)s.waiting().sleep(0);
    CHECK_FALSE(s.look());
  }
  CHECK(count_watched() == s.all);
}

TEST_CASE("tcp: what comes over a connection that is not watched is found by who looks at all of them") {
  watchdog dog;
  scene s;
  collx::communicator<tcp> second = s.another();
  s.send();
  second.engine().endpoint().progress();
  collx::transport::arrival what{};
  CHECK(s.waiting().arrived(0, 0, what));
}

TEST_CASE("tcp: who naps again is woken by what another thread has read for it between the naps") {
  watchdog dog;
  scene s;
  collx::communicator<tcp> second = s.another();
  REQUIRE(s.waiting().prepare_to_sleep());
  CHECK_FALSE(s.waiting().sleep(0));
  CHECK_FALSE(s.look());
  s.send();
  second.engine().endpoint().progress();
  CHECK(s.waiting().sleep(60'000'000));
  CHECK(s.look());
}

TEST_CASE("tcp: what the system refuses to watch is looked at, until it no longer refuses") {
  watchdog dog;
  scene s;
  {
    scarce_watches::shortage const now;
    s.send();
    CHECK(s.naps_until_it_comes(3));
    CHECK(count_watched() == s.all - 1);
    s.waiting().consume(0, 0);
  }
  s.expect();
  REQUIRE(s.waiting().prepare_to_sleep());
  CHECK(count_watched() == s.all);
  s.send();
  CHECK(s.waiting().sleep(60'000'000));
  CHECK(s.look());
}

TEST_CASE("tcp: connections that the system refuses to watch when they are made are used all the same") {
  watchdog dog;
  wired::cables cables{2};
  auto const chosen = scene::patient();
  collx::communicator<tcp> zero = tcp::join<tcp>(0, 2, chosen, cables[0]);
  collx::communicator<tcp> one = tcp::join<tcp>(1, 2, chosen, cables[1]);
  int const before = count_watched();
  auto &sends = zero.engine().endpoint(), &waits = one.engine().endpoint();
  std::byte const sent{7};
  std::byte wanted{};
  collx::transport::arrival what{};
  {
    scarce_watches::shortage const now;
    waits.expect(0, 0, &wanted, 1);
    sends.send(0, 1, &sent, 1, collx::transport::handover::in_place);
    for (int i = 0; i < 10; ++i) sends.progress(), waits.progress();
    CHECK(count_watched() == before);
    CHECK(waits.arrived(0, 0, what));
    zero.abort();
    for (int i = 0; i < 10; ++i) sends.progress(), waits.progress();
    CHECK(waits.interrupted(collx::no_rank) == collx::status::aborted);
  }
}

TEST_CASE("tcp: a rank that cannot watch its gate says so") {
  wired::cables cables{2};
  scarce_watches::shortage const now;
  CHECK_THROWS_WITH_AS((void)tcp::join<tcp>(0, 2, scene::patient(), cables[0]),
                       doctest::Contains("fs.epoll.max_user_watches"), collx::error);
  delete cables[1];
}
