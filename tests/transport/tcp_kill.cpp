// SPDX-License-Identifier: Apache-2.0
// Processes that talk over TCP are killed or stopped in the middle of a collective: every survivor gets an
// error that names the collective, its number and the lost rank; within moments where the system tells, by
// the deadline where it does not.
// ctest: TIMEOUT 900
// ctest: LABELS waits
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <netinet/in.h>
#include <sys/socket.h>

#include "collx/bootstrap/tcp_processes.hpp"
#include "collx/collective/send_receive.hpp"
#include "sample.hpp"
#include "transport/killing.hpp"
#include "watched_tcp.hpp"

namespace {

using namespace killing_ranks;

struct over_tcp {
  using transport = collx::transport::faulty<collx::transport::tcp>;
  template <class RankMain>
  static auto run(rank_t size, RankMain const& rank_main, collx::transport::settings const& chosen) {
    collx::transport::tcp_settings over;
    over.common = chosen;
    return watched::on_tcp_processes<transport>(size, rank_main, over);
  }
};
using communicator = collx::communicator<over_tcp::transport>;

enum class ending { reset, silent };  // an RST to the other side; a FIN in both directions

// Ends one of this process's connections, the nth that it has, as whatever lies between two hosts may. False:
// it has not so many.
bool end_connection(int nth, ending how) {
  for (int fd = 3; fd < 300; ++fd) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) continue;
    if (peer.ss_family != AF_INET || nth-- != 0) continue;
    sockaddr nowhere{};
    nowhere.sa_family = AF_UNSPEC;
    return how == ending::silent ? shutdown(fd, SHUT_RDWR) == 0 : connect(fd, &nowhere, sizeof nowhere) == 0;
  }
  return false;
}

// Where this process listens.
std::uint16_t own_port() {
  for (int fd = 3; fd < 300; ++fd) {
    int listens = 0;
    socklen_t length = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens != 0)
      return collx::net::local_address(fd).port;
  }
  return 0;
}

bool somebody_listens_at(std::uint16_t port) {
  collx::net::owned_fd const one = collx::net::begin_connect(collx::net::address::loopback(port), {});
  return one && collx::net::ready_before(one.get(), POLLOUT, collx::now_us() + deadline_us) &&
         collx::net::connect_outcome(one.get()) == 0;
}

}  // namespace

TEST_CASE("tcp: every survivor of a killed rank gets an error that names it, whatever the schedule") {
  kill_in_every_schedule<over_tcp>();
}

TEST_CASE("tcp: a rank killed at any of its sends, or before any of its receipts, is noticed") {
  kill_at_each<over_tcp>(20);
}

TEST_CASE("tcp: a rank that is stopped is named when the deadline has passed, by all the others") {
  // Who gives no answer for an eighth of it, held up by the machine, would be blamed as well.
  constexpr std::uint64_t patience_us = 12'000'000;
  static shared_records records;
  records.clear();
  struct shared_pid {
    pid_t* at = static_cast<pid_t*>(
        mmap(nullptr, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  } const victim;
  constexpr rank_t stopped = 2;
  auto const codes = over_tcp::run(4,
                                   [&](communicator& comm) {
                                     if (comm.rank() == stopped) *victim.at = getpid();
                                     collx::barrier(comm);
                                     // What others still wait for in there is on its way to them.
                                     if (comm.rank() == stopped) raise(SIGSTOP);
                                     std::vector<int> values(100'000);
                                     call_until_it_fails(comm, records[comm.rank()], [&](communicator& c) {
                                       collx::all_reduce<collx::algo::ring>(c, values);
                                     });
                                     // The stopped one cannot end by itself; and nobody is to see its end.
                                     records[comm.rank()].ready = true;
                                     for (rank_t const r : {0, 1, 3})
                                       while (comm.rank() == 0 && !records[r].ready) sched_yield();
                                     if (comm.rank() == 0) kill(*victim.at, SIGKILL);
                                   },
                                   {.timeout_us = patience_us, .staging_bytes = 64 * 1024});
  CHECK(codes[stopped] == 128 + SIGKILL);
  for (rank_t const r : {0, 1, 3}) {
    CAPTURE(r);
    std::string const text = records[r].text;
    CAPTURE(text);
    REQUIRE(records[r].failed);
    status const code = records[r].report.code;
    CHECK((code == status::timeout || code == status::aborted));
    CHECK(records[r].took_us < 2 * patience_us);  // the deadline, and as much again for a busy machine
    CHECK(records[r].report.peer == stopped);     // although only rank 3 waits for it, and rank 1 for rank 0
  }
  munmap(victim.at, sizeof(pid_t));
}

TEST_CASE("tcp: each connection of several that ends by itself is noticed at once by both sides") {
  static shared_records records;
  collx::transport::tcp_settings chosen;
  chosen.common = {.timeout_us = deadline_us, .staging_bytes = 1024 * 1024};
  chosen.limits.flows = 3;
  chosen.limits.slice_bytes = 16 * 1024;
  for (ending const how : {ending::reset, ending::silent})
    for (int nth = 0; nth < chosen.limits.connections(); ++nth) {
      records.clear();
      auto const codes = watched::on_tcp_processes(
          2,
          [&](collx::communicator<collx::transport::tcp>& comm) {
            std::vector<int> values(300'000);                    // many slices: every connection is used
            collx::all_reduce<collx::algo::ring>(comm, values);  // all connections stand
            // Not while the other side may still be in there, and wait for what would be lost.
            records[comm.rank() + 2].ready = true;
            while (!records[3 - comm.rank()].ready) sched_yield();
            // Calls that never wait could do without a connection that they happen not to need: one side
            // waits.
            if (comm.rank() == 1 && !end_connection(nth, how)) std::_Exit(9);
            while (comm.rank() == 1 && !records[0].ready) sched_yield();
            call_until_it_fails(comm, records[comm.rank()],
                                [&](auto& c) { collx::all_reduce<collx::algo::ring>(c, values); });
            records[comm.rank()].ready = true;
          },
          chosen);
      CAPTURE(nth);
      CAPTURE(static_cast<int>(how));
      for (rank_t const r : {0, 1}) {
        std::string const text = records[r].text;
        CAPTURE(r);
        CAPTURE(text);
        CHECK(codes[static_cast<std::size_t>(r)] == 0);
        REQUIRE(records[r].failed);
        status const code = records[r].report.code;
        CHECK((code == status::peer_lost || code == status::aborted));
        // Each blames the other side, or has heard that the other side blames this one.
        CHECK(records[r].report.peer == (code == status::peer_lost ? 1 - r : r));
        CHECK(records[r].took_us < noticed_within_us);
      }
    }
}

// 2 hears first that 1 is gone, and leaves; 0, which only then dials it, has to hear of 1 by way of 3.
void loses_one_of_four(shared_records& records) {
  records.clear();
  constexpr rank_t port_is_known = 4, is_gone = 5;
  auto const codes = watched::on_tcp_processes(4, [&](collx::communicator<collx::transport::tcp>& comm) {
    rank_t const me = comm.rank();
    int value = 0;
    auto const meet = [&](rank_t peer) {
      if (me < peer) collx::send(comm, std::span<int const>(&value, 1), peer);
      else collx::receive(comm, std::span(&value, 1), peer);
    };
    if (me < 3) meet(me + 1);
    if (me > 0) meet(me - 1);
    if (me == 0 || me == 3) meet(3 - me);
    if (me == 2) records[port_is_known].took_us = own_port();
    records[me].ready = true;
    for (rank_t r = 0; r < 4; ++r)
      while (!records[r].ready) sched_yield();
    if (me == 1) raise(SIGKILL);
    if (me == 0)
      while (somebody_listens_at(static_cast<std::uint16_t>(records[port_is_known].took_us))) sched_yield();
    if (me == 0) records[is_gone].ready = true;
    while (me == 3 && !records[is_gone].ready) sched_yield();
    if (me == 3) poll(nullptr, 0, 100);  // at something else, while 0 dials
    rank_t const from = me == 0 ? 2 : me == 2 ? 1 : 0;
    call_until_it_fails(comm, records[me], [&](auto& c) { collx::receive(c, std::span(&value, 1), from); });
  });
  for (rank_t const r : {0, 2, 3}) {
    std::string const text = records[r].text;
    CAPTURE(r);
    CAPTURE(text);
    CHECK(codes[static_cast<std::size_t>(r)] == 0);
    REQUIRE(records[r].failed);
  }
}

TEST_CASE("tcp: who finds that a rank has left after a failure names the one that was lost") {
  static shared_records records;  // of ranks; behind them, what they wait for
  // Where the machine holds 3 up for so long, nobody has told 0, who then tells 3 something else.
  constexpr std::uint64_t held_up_us = 1'000'000;
  int attempts = 0;
  do loses_one_of_four(records);
  while (records[0].took_us >= held_up_us && ++attempts < 5);
  REQUIRE(records[0].took_us < held_up_us);
  for (rank_t const r : {0, 2, 3}) CHECK(records[r].report.peer == 1);
}

TEST_CASE("tcp: ranks killed as seeds have it are noticed") {
  kill_from_seeds<over_tcp>(40, "test_transport_tcp_kill");
}
