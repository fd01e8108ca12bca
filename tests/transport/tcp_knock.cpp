// SPDX-License-Identifier: Apache-2.0
// The lower of two ranks dials. One that is gone before it has dialled is noticed all the same, by a higher
// one that waits for it alone; and one that is only late is disturbed by nobody who asks after it.
// component: tcp
// ctest: LABELS waits
// thread sanitizer: no, each rank is a process of one thread
#include <csignal>
#include <cstdlib>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "shared_with_forks.hpp"
#include "transport/wired.hpp"
#include "watched_tcp.hpp"

namespace {

using collx::rank_t;
using collx::status;
using tcp = collx::transport::tcp;
using communicator = collx::communicator<tcp>;
namespace sockets = collx::transport::sockets;

constexpr std::uint64_t deadline_us = 40'000'000, soon_us = deadline_us / 2;
constexpr char secret[] = "the secret of these tests";

collx::transport::tcp_settings settings(bool tls, std::uint64_t timeout_us = deadline_us) {
  collx::transport::tcp_settings chosen;
  chosen.common.timeout_us = timeout_us;
  chosen.common.staging_bytes = 64 * 1024;
  chosen.tls = tls;
  return chosen;
}

// Waits for rank 0, which has ended. 0: is told so, long before the deadline.
int is_told(communicator& comm, bool alone) {
  std::uint64_t const began_us = collx::now_us();
  try {
    int value = 0;
    collx::receive(comm, std::span(&value, 1), 0);
  } catch (collx::error const& told) {
    status const code = told.report().code;
    // One that waits for nobody else has nobody who could tell it more.
    if (code != status::peer_lost && (alone || code != status::aborted)) return 2;
    if (told.report().peer != 0) return 3;
    return collx::now_us() - began_us < soon_us ? 0 : 4;
  }
  return 5;
}

collx::bootstrap::exit_codes run(rank_t size, bool tls, auto const& rank_main,
                                 std::uint64_t timeout_us = deadline_us) {
  setenv("COLLX_SECRET", secret, 1);
  auto codes = watched::on_tcp_processes(size, rank_main, settings(tls, timeout_us));
  unsetenv("COLLX_SECRET");
  return codes;
}

}  // namespace

TEST_CASE("tcp: a rank killed before it is connected is soon lost to higher ones that wait for it alone") {
  for (bool const tls : {false, true})
    for (rank_t const size : {2, 4}) {
      CAPTURE(tls);
      CAPTURE(size);
      auto const codes = run(size, tls, [&](communicator& comm) {
        if (comm.rank() == 0) std::raise(SIGKILL);
        return is_told(comm, size == 2);
      });
      CHECK(codes[0] == 128 + SIGKILL);
      for (rank_t r = 1; r < size; ++r) CHECK(codes[static_cast<std::size_t>(r)] == 0);
    }
}

// Rank 1 has asked after rank 0, and nobody answers: then rank 0 is killed, without having looked.
TEST_CASE("tcp: a rank killed while a higher one asks after it is lost") {
  for (bool const tls : {false, true}) {
    CAPTURE(tls);
    auto const codes = run(2, tls, [&](communicator& comm) {
      if (comm.rank() != 0) return is_told(comm, true);
      poll(nullptr, 0, 2'000);
      std::raise(SIGKILL);
      return 1;
    });
    CHECK(codes[1] == 0);
  }
}

TEST_CASE("tcp: who aborts and leaves before anybody is connected is lost, not late, to who comes then") {
  shared_with_forks<arrivals> left;
  auto const codes = run(2, false, [&](communicator& comm) {
    if (comm.rank() != 0) return left->wait_for(1), is_told(comm, true);
    comm.abort();
    { communicator const leaves = std::move(comm); }
    left->come();
    return 0;
  });
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("tcp: a rank that comes late is disturbed by nobody who has asked after it meanwhile") {
  for (bool const tls : {false, true})
    for (rank_t const late : {0, 1, 2}) {
      CAPTURE(tls);
      CAPTURE(late);
      auto const codes = run(
          4, tls,
          [&](communicator& comm) {
            if (comm.rank() == late) poll(nullptr, 0, 600);
            for (int round = 0; round < 3; ++round) {
              std::vector<int> values(1000, comm.rank());
              collx::all_reduce(comm, std::span(values));
              if (values[999] != 6) return 1;
            }
            return 0;
          },
          6'000'000);  // so they ask soon
      for (int const code : codes) CHECK(code == 0);
    }
}

namespace {

// Four ranks of one thread; 0 and 2 are no neighbours. Rank 2 waits for a message of rank 0, and knocks.
struct scene {
  scene() {
    for (rank_t r = 0; r < 4; ++r)
      all.push_back(tcp::join<tcp>(r, 4, settings(false, 1'000'000), cables[r]));
    look();
    dialled = cables[0]->joined();
    high().expect(0, 0, &wanted, 1);
    knock_again();
  }
  void knock_again() {
    int const before = cables[2]->joined();
    while (cables[2]->joined() == before) REQUIRE(high().interrupted(0) == status::ok);
  }
  tcp::endpoint& at(rank_t rank) { return all[static_cast<std::size_t>(rank)].engine().endpoint(); }
  tcp::endpoint& low() { return at(0); }
  tcp::endpoint& high() { return at(2); }
  void look() {
    for (int i = 0; i < 100; ++i)
      for (rank_t r = 0; r < 4; ++r) at(r).progress();
  }
  void send() { low().send(0, 2, &sent, 1, collx::transport::handover::in_place); }
  bool arrives() {
    look();
    collx::transport::arrival what{};
    return high().arrived(0, 0, what) && wanted == sent;
  }
  // What is said over the connection for control is heard.
  bool hears_alarm() {
    all[0].abort();
    for (int i = 0; i < 100; ++i) high().progress(), low().progress();
    return high().interrupted(collx::no_rank) == status::aborted;
  }

  wired::cables cables{4};
  std::vector<communicator> all;
  int dialled = 0;  // by rank 0, before
  std::byte sent{7}, wanted{};
};

}  // namespace

TEST_CASE("tcp: the connection by which a higher rank asks is the one for control, if the lower has none") {
  watchdog dog;
  scene s;
  s.look();
  CHECK(s.cables[0]->joined() == s.dialled);
  SUBCASE("and what happens is told over it") { CHECK(s.hears_alarm()); }
  SUBCASE("and only those for data are missing") {
    s.send();
    CHECK(s.arrives());
    CHECK(s.cables[0]->joined() == s.dialled + 1);
    CHECK(s.hears_alarm());
  }
}

TEST_CASE("tcp: of two connections for control, dialled at the same time, the lower rank's stays") {
  watchdog dog;
  scene s;
  SUBCASE("the higher one learns of both together") {}
  SUBCASE("the higher one has its own before") { s.high().progress(); }
  s.send();
  SUBCASE("the lower one learns of it late") {
    for (int i = 0; i < 100; ++i) s.high().progress();
  }
  CHECK(s.arrives());
  CHECK(s.cables[0]->joined() == s.dialled + 2);
  CHECK(s.high().interrupted(0) == status::ok);
  CHECK(s.hears_alarm());
}

TEST_CASE("tcp: that the connection by which a higher rank asks ends says nothing, and it asks again") {
  watchdog dog;
  scene s;
  sockets::connection theirs;
  REQUIRE(s.cables[0]->poll(theirs));
  REQUIRE(theirs.is_knock);
  s.look();
  theirs.fd.reset();
  s.look();
  s.knock_again();
  s.look();
  s.send();
  CHECK(s.arrives());
  CHECK(s.hears_alarm());
}
