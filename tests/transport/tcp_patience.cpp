// SPDX-License-Identifier: Apache-2.0
// How long silence is borne: a rank that computes is not taken for lost, and a communicator that may wait
// longer than the world finds its connections there.
// component: tcp
// ctest: LABELS waits
// thread sanitizer: no, each rank is a process of one thread
// compiled: apart, it replaces epoll_ctl
#include <memory>
#include <vector>

#include <doctest/doctest.h>
#include <netinet/tcp.h>

#include "collx/algo/pairwise.hpp"
#include "collx/algo/ring.hpp"
#include "collx/collx.hpp"
#include "shared_with_forks.hpp"
#include "transport/scarce_watches.hpp"
#include "transport/without_descriptors.hpp"
#include "watched_tcp.hpp"

namespace {

using collx::rank_t;
using collx::status;
using communicator = collx::communicator<collx::transport::tcp>;
using collx::transport::sockets::connection;
using collx::transport::sockets::network_connector;
namespace net = collx::net;

// Two ranks' connectors; each gives up who does not answer after `timeout_us`.
struct two {
  explicit two(std::uint64_t timeout_us, net::protection protects = net::protection::none) {
    net::owned_fd doors[2];
    for (net::owned_fd& door : doors) door = net::listen_at(net::address::loopback(0), {});
    for (rank_t r = 0; r < 2; ++r) at[r] = net::local_address(doors[r].get());
    for (rank_t r = 0; r < 2; ++r) {
      collx::array<net::address> known(2);
      known[0] = at[0], known[1] = at[1];
      net::expectation const whom{r, 2, net::mask_of(net::purpose::link), 2, protects};
      all[r] =
          std::make_unique<network_connector>(r, std::move(known), net::gate(std::move(doors[r]), keys, whom),
                                              keys, net::socket_settings{}, timeout_us, protects);
    }
  }
  // Whether both have a connection with the other one before rank 0 gives up.
  bool connects() {
    connection got[2];
    bool has[2] = {};
    while (!(has[0] && has[1])) {
      for (int r = 0; r < 2; ++r) has[r] = has[r] || all[r]->poll(got[r]);
      if (all[0]->outlook(1) != status::ok) return false;
    }
    return true;
  }

  static constexpr char secret[] = "the secret of these tests";
  net::credentials const keys{net::secret::of(std::span(secret, sizeof secret - 1)), 1};
  net::address at[2];
  std::unique_ptr<network_connector> all[2];
};

// How long the system keeps each connection of this process that is not acknowledged; 0: they differ.
unsigned patience_ms() {
  unsigned common = 0;
  for (int fd = 3; fd < 300; ++fd) {
    if (net::peer_address(fd).port == 0) continue;
    unsigned now = 0;
    socklen_t length = sizeof now;
    if (getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &now, &length) != 0) continue;
    if (common != 0 && now != common) return 0;
    common = now;
  }
  return common;
}

}  // namespace

TEST_CASE("tcp: who dials and then computes for longer than the time-out has not lost anybody") {
  watchdog dog;
  std::uint64_t const timeout_us = 400'000;
  two ranks(timeout_us);
  ranks.all[0]->dial(1, 0, 1);
  std::uint64_t const until_us = collx::now_us() + 2 * timeout_us;
  while (collx::now_us() < until_us) sched_yield();
  CHECK(ranks.connects());
}

TEST_CASE("tcp: who computes in the middle of TLS's handshake is not given up by the one that he dials") {
  watchdog dog;
  std::uint64_t const timeout_us = 40'000;
  for (int const looks : {0, 1, 2, 3}) {  // behind the welcome: nothing is said, a hello, and so on
    CAPTURE(looks);
    two ranks(timeout_us, net::protection::tls);
    auto& [zero, one] = ranks.all;
    zero->be_patient(60'000'000);
    zero->dial(1, 0, 1);
    connection got[2];
    bool has[2] = {};
    auto const look = [&](int r) { has[r] = has[r] || ranks.all[r]->poll(got[r]); };
    while (one->guests().welcomed == 0) look(0), look(1);
    for (int i = 0; i < looks; ++i) look(0), look(1);
    std::uint64_t const until_us = collx::now_us() + 3 * timeout_us;
    while (collx::now_us() < until_us) look(1);
    CHECK(one->outlook(0) == status::ok);
    while (!(has[0] && has[1]) && zero->outlook(1) == status::ok) look(0), look(1);
    CHECK(has[0]);
    CHECK(has[1]);
  }
}

TEST_CASE("tcp: who stalls in the middle of TLS's handshake is shut out at the time-out, and not lost") {
  watchdog dog;
  two ranks(100'000, net::protection::tls);
  network_connector& one = *ranks.all[1];
  net::introduction const zero{net::purpose::link, 0, 1, 2, 0, 2, net::protection::tls};
  net::caller call(ranks.at[1], zero, ranks.keys, {}, collx::now_us() + 60'000'000);
  connection none;
  while (call.progress() == status::pending) REQUIRE_FALSE(one.poll(none));
  REQUIRE(call.progress() == status::ok);
  net::owned_fd const stalls = call.take();
  while (one.guests().welcomed == 0) REQUIRE_FALSE(one.poll(none));
  // Who sleeps need not look up for him: word of him comes, and the end of his time is told.
  CHECK_FALSE(one.is_dialling());
  CHECK_FALSE(net::ready_before(one.fd(), POLLIN, collx::now_us() + 1'000));
  char c = 0;
  std::uint64_t const until_us = collx::now_us() + 30'000'000;
  while (recv(stalls.get(), &c, 1, MSG_DONTWAIT) != 0 && collx::now_us() < until_us)
    if (one.is_due()) REQUIRE_FALSE(one.poll(none));
  CHECK(collx::now_us() < until_us);
  CHECK_FALSE(one.is_due());
  CHECK(one.outlook(0) == status::ok);
  ranks.all[0]->dial(1, 0, 1);
  CHECK(ranks.connects());
}

TEST_CASE("tcp: who listens with TLS and sleeps is told of every word of the handshake") {
  watchdog dog;
  two ranks(60'000'000, net::protection::tls);
  ranks.all[0]->dial(1, 0, 1);
  connection got[2];
  bool has[2] = {};
  while (!(has[0] && has[1])) {
    has[0] = has[0] || ranks.all[0]->poll(got[0]);
    if (!has[1] && net::ready_before(ranks.all[1]->fd(), POLLIN, collx::now_us() + 1'000))
      has[1] = ranks.all[1]->poll(got[1]);
  }
  // What is handed over is watched by somebody else.
  char const word = 1;
  CHECK(send(got[0].fd.get(), &word, 1, MSG_NOSIGNAL) == 1);
  CHECK(net::ready_before(got[1].fd.get(), POLLIN, collx::now_us() + 30'000'000));
  CHECK_FALSE(net::ready_before(ranks.all[1]->fd(), POLLIN, collx::now_us() + 1'000));
}

TEST_CASE("tcp: who dials and looks goes on for longer than the time-out: whoever waits has a deadline") {
  watchdog dog;
  std::uint64_t const timeout_us = 50'000;
  for (auto const protects : {net::protection::none, net::protection::tls})
    for (int const looks : {0, 2, 3}) {  // of who is dialled: none, before all is said
      two ranks(timeout_us, protects);
      CAPTURE(looks);
      ranks.all[0]->dial(1, 0, 1);
      connection none;
      bool stands = false;
      for (int i = 0; i < looks && protects == net::protection::tls; ++i) {
        stands = stands || ranks.all[0]->poll(none);
        stands = stands || ranks.all[1]->poll(none);
      }
      std::uint64_t const until_us = collx::now_us() + 4 * timeout_us;
      while (collx::now_us() < until_us) stands = stands || ranks.all[0]->poll(none);
      CHECK(ranks.all[0]->outlook(1) == status::ok);
      if (!stands) CHECK(ranks.connects());
    }
}

TEST_CASE("tcp: who has no descriptor to dial with for a moment dials when there is one, and else says so") {
  watchdog dog;
  for (auto const protects : {net::protection::none, net::protection::tls}) {
    two ranks(60'000'000, protects);
    ranks.all[0]->dial(1, 0, 1);
    connection none;
    {
      without_descriptors const now;
      for (int i = 0; i < 10; ++i) CHECK_FALSE(ranks.all[0]->poll(none));
    }
    CHECK(ranks.connects());
  }
  two ranks(60'000'000);
  ranks.all[0]->dial(1, 0, 1);
  connection none;
  without_descriptors const now;
  while (ranks.all[0]->outlook(1) == status::ok) REQUIRE_FALSE(ranks.all[0]->poll(none));
  CHECK(ranks.all[0]->outlook(1) == status::system_failure);
}

TEST_CASE("tcp: who asks after a lower rank that dials at that time, and is closed out, has not lost it") {
  watchdog dog;
  for (auto const protects : {net::protection::none, net::protection::tls}) {
    two ranks(60'000'000, protects);
    network_connector& zero = *ranks.all[0];
    zero.dial(1, 0, 2);
    // Rank 1, with a gate elsewhere: nobody looks at the one that rank 0 dials.
    collx::array<net::address> known(2);
    known[0] = ranks.at[0], known[1] = ranks.at[1];
    net::expectation const whom{1, 2, net::mask_of(net::purpose::link), 2, protects};
    net::gate door(net::listen_at(net::address::loopback(0), {}), ranks.keys, whom);
    network_connector one(1, std::move(known), std::move(door), ranks.keys, {}, 60'000'000, protects);
    connection none;
    for (std::uint64_t const knocks : {1u, 2u}) {
      one.knock(0);
      while (zero.guests().welcomed < knocks) (void)zero.poll(none), (void)one.poll(none);
      std::uint64_t const until_us = collx::now_us() + 20'000;
      while (collx::now_us() < until_us) (void)zero.poll(none), (void)one.poll(none);
      CHECK(one.outlook(0) == status::ok);
    }
  }
}

TEST_CASE("tcp: connections that the system refuses to watch stand all the same") {
  watchdog dog;
  for (auto const protects : {net::protection::none, net::protection::tls}) {
    two ranks(60'000'000, protects);
    scarce_watches::shortage const now;
    ranks.all[0]->dial(1, 0, 1);
    connection got[2];
    bool has[2] = {};
    // Whoever looks when there is word, or when it is due, looks often enough.
    auto const is_told = [&](int r) {
      return ranks.all[r]->is_due() || net::ready_before(ranks.all[r]->fd(), POLLIN, collx::now_us() + 1'000);
    };
    while (!(has[0] && has[1]))
      for (int r = 0; r < 2; ++r) has[r] = has[r] || (is_told(r) && ranks.all[r]->poll(got[r]));
  }
}

TEST_CASE("tcp: a rank of the job that has other settings is no lost one") {
  watchdog dog;
  two ranks(60'000'000);
  ranks.all[0]->dial(1, 5, 6);
  connection none;
  while (ranks.all[0]->outlook(1) == status::ok) {
    REQUIRE_FALSE(ranks.all[0]->poll(none));
    REQUIRE_FALSE(ranks.all[1]->poll(none));
  }
  CHECK(ranks.all[0]->outlook(1) == status::mismatch);
}

TEST_CASE("tcp: who asks after a rank and lets go of it before TLS's handshake has ended is not lost") {
  watchdog dog;
  two ranks(60'000'000, net::protection::tls);
  network_connector& zero = *ranks.all[0];
  connection none;
  {
    net::introduction const one{net::purpose::link, 1, 0, 2, 0, 2, net::protection::tls};
    net::caller call(ranks.at[0], one, ranks.keys, {}, collx::now_us() + 60'000'000);
    while (call.progress() == status::pending) REQUIRE_FALSE(zero.poll(none));
    REQUIRE(call.progress() == status::ok);
    while (zero.guests().welcomed == 0) REQUIRE_FALSE(zero.poll(none));
  }
  REQUIRE(net::ready_before(zero.fd(), POLLIN, collx::now_us() + 30'000'000));
  while (net::ready_before(zero.fd(), POLLIN, collx::now_us() + 1'000)) REQUIRE_FALSE(zero.poll(none));
  CHECK(zero.outlook(1) == status::ok);
  zero.dial(1, 0, 1);
  CHECK(ranks.connects());
}

TEST_CASE("tcp: who has asked after a rank asks no more once that one dials") {
  watchdog dog;
  two ranks(60'000'000);
  network_connector& one = *ranks.all[1];
  one.knock(0);
  connection got;
  REQUIRE_FALSE(one.poll(got));  // it is on its way, and rank 0 does not look
  net::introduction const zero{net::purpose::link, 0, 1, 2, 0, 2};
  net::caller call(ranks.at[1], zero, ranks.keys, {}, collx::now_us() + 60'000'000);
  while (!one.poll(got)) (void)call.progress();
  CHECK(got.peer == 0);
  CHECK_FALSE(got.is_knock);
  std::uint64_t const until_us = collx::now_us() + 50'000;
  while (collx::now_us() < until_us) REQUIRE_FALSE(one.is_due());
}

TEST_CASE("tcp: where another job listens at the port that a peer had, that one is lost") {
  watchdog dog;
  for (rank_t const from : {0, 1}) {  // who dials, and who asks after a lower rank
    two ranks(60'000'000);
    rank_t const gone = 1 - from;
    network_connector& left = *ranks.all[from];
    ranks.all[gone].reset();
    net::gate other(net::listen_at(ranks.at[gone], {}), ranks.keys.for_job(2),
                    {gone, 2, net::mask_of(net::purpose::link), 2});
    from == 0 ? left.dial(gone, 0, 1) : left.knock(gone);
    connection none;
    net::guest nobody;
    while (left.outlook(gone) == status::ok) {
      REQUIRE_FALSE(left.poll(none));
      REQUIRE_FALSE(other.poll(nobody));
    }
    CHECK(left.outlook(gone) == status::peer_lost);
  }
}

TEST_CASE("tcp: a rank that computes for longer than the time-out, while others talk, is nobody's loss") {
  setenv("COLLX_SECRET", "the secret of these tests", 1);
  for (bool const tls : {false, true}) {
    CAPTURE(tls);
    collx::transport::tcp_settings chosen;
    // Longer than a machine with other work holds a process up.
    chosen.common.timeout_us = 3'000'000;
    chosen.tls = tls;
    shared_with_forks<arrivals> here;
    auto const codes = watched::on_tcp_processes(
        3,
        [&](communicator& comm) {
          int word = comm.rank(), go = 1;
          here->come();
          here->wait_for(3);
          if (comm.rank() == 1) poll(nullptr, 0, 6'000);
          std::uint64_t const until_us = collx::now_us() + 6'000'000;
          while (comm.rank() != 1 && go != 0) {
            int const peer = 2 - comm.rank();
            int const said = comm.rank() == 0 ? collx::now_us() < until_us : 1;
            poll(nullptr, 0, 1);  // a thousand words a second are talk enough, and leave time to others
            if (comm.rank() == 0) collx::send(comm, std::span(&said, 1), peer);
            else collx::receive(comm, std::span(&go, 1), peer);
            if (comm.rank() == 2) collx::send(comm, std::span<int const>(&go, 1), peer);
            else collx::receive(comm, std::span(&go, 1), peer);
          }
          collx::all_reduce(comm, std::span(&word, 1));
          return word == 3 ? 0 : 1;
        },
        chosen);
    for (int const code : codes) CHECK(code == 0);
  }
  unsetenv("COLLX_SECRET");
}

TEST_CASE("tcp: connections bear silence for as long as the most patient communicator waits") {
  collx::transport::tcp_settings chosen;
  chosen.common.timeout_us = 40'000'000;
  auto const codes = watched::on_tcp_processes(
      4,
      [](communicator& comm) {
        std::vector<int> values(1000, comm.rank());
        collx::all_reduce<collx::algo::ring>(comm, std::span(values));
        if (patience_ms() != 40'000) return 2;
        comm.timeout_us(90'000'000);  // of connections that are there
        if (patience_ms() != 90'000) return 3;
        std::vector<int> const sent(4000, comm.rank());
        std::vector<int> got(sent.size());
        collx::all_to_all<collx::algo::pairwise>(comm, sent, std::span(got));  // and of more
        if (patience_ms() != 90'000) return 4;
        auto group = comm.split(0, 0);
        group.timeout_us(30'000'000);  // which the other one is not bound by
        if (patience_ms() != 90'000) return 5;
        group.timeout_us(~std::uint64_t{0});
        collx::all_reduce(group, std::span(values));
        return patience_ms() == 2'000'000'000 ? 0 : 6;
      },
      chosen);
  for (int const code : codes) CHECK(code == 0);
}
