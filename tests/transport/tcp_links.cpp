// SPDX-License-Identifier: Apache-2.0
// Which connections there are: those that a collective needs, made by the lower rank, and a ring for control.
// And what is said on that for control does not wait behind data.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/pairwise.hpp"
#include "collx/algo/ring.hpp"
#include "collx/collx.hpp"
#include "collx/transport/sockets/link.hpp"
#include "shared_with_forks.hpp"
#include "transport/held_ends.hpp"
#include "watched_tcp.hpp"

namespace {

using collx::rank_t;
using communicator = collx::communicator<collx::transport::tcp>;
constexpr rank_t ranks = 8;
constexpr int of_a_link = 2;  // for control, and for data

struct counted {
  int dialled = 0, accepted = 0;
};

// What this process has open: who has been called has the port that he listens at.
counted count_connections() {
  int listens_at = 0;
  std::vector<int> ports;
  for (int fd = 3; fd < 300; ++fd) {
    auto const here = collx::net::local_address(fd);
    if (here.version != 4) continue;
    int listens = 0;
    socklen_t length = sizeof listens;
    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
    if (listens != 0) listens_at = here.port;
    else if (collx::net::peer_address(fd).port != 0) ports.push_back(here.port);
  }
  counted now;
  for (int const port : ports) ++(port == listens_at ? now.accepted : now.dialled);
  return now;
}

bool has_links(rank_t higher, rank_t lower) {
  counted const now = count_connections();
  return now.dialled == higher * of_a_link && now.accepted == lower * of_a_link;
}

}  // namespace

TEST_CASE("tcp: a ring connects neighbours, and a collective of all connects all") {
  // Who is ahead would be counted already, and who has left no more.
  struct points {
    arrivals around, everywhere;
  };
  shared_with_forks<points> const counted_by;
  // A rank that waits for long asks after the lower one by a connection of its own: not here.
  collx::transport::tcp_settings patient;
  patient.common.timeout_us = 200'000'000;
  auto const rank_main = [&](communicator& comm) {
    rank_t const me = comm.rank(), first = 0, last = ranks - 1;
    std::vector<int> values(10'000, me);
    collx::all_reduce<collx::algo::ring>(comm, std::span(values));
    if (values[7] != ranks * (ranks - 1) / 2) return 2;
    // The last one and the first one are neighbours, too.
    if (!has_links(me == first ? 2 : me == last ? 0 : 1, me == first ? 0 : me == last ? 2 : 1)) return 3;
    counted_by->around.come();
    counted_by->around.wait_for(ranks);
    // What is counted can be more.
    std::vector<int> sent(ranks * 1000, me), got(sent.size());
    collx::all_to_all<collx::algo::pairwise>(comm, std::span<int const>(sent), std::span(got));
    for (rank_t r = 0; r < ranks; ++r)
      if (got[static_cast<std::size_t>(r) * 1000] != r) return 4;
    if (!has_links(last - me, me)) return 5;
    counted_by->everywhere.come();
    counted_by->everywhere.wait_for(ranks);
    return 0;
  };
  for (int const code : watched::on_tcp_processes(ranks, rank_main, patient)) CHECK(code == 0);
}

TEST_CASE("tcp: a question is answered, and an alarm told, while nobody reads the data") {
  using namespace collx::transport::sockets;
  watchdog dog;
  int theirs[2];
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = 8 << 20;
  {
    auto comm = collx::transport::tcp::join(0, 2, chosen, 2, new held_ends(theirs));
    auto& endpoint = comm.engine().endpoint();
    auto const look = [&] {
      for (int i = 0; i < 100; ++i) endpoint.progress();
    };
    // What is heard on the connection for control next.
    auto const hears = [&](frame_kind kind) {
      std::byte head[frame_bytes];
      frame what;
      return recv(theirs[0], head, sizeof head, MSG_DONTWAIT) == ssize_t{sizeof head} && decode(head, what) &&
             what.kind == kind;
    };
    look();
    std::vector<std::byte> payload(4 << 20, std::byte{7});  // more than a socket holds
    endpoint.send(0, 1, payload.data(), payload.size(), collx::transport::handover::in_place);
    look();
    REQUIRE(endpoint.unread_by(0) == 1);
    frame question;
    question.kind = frame_kind::question;
    std::byte head[frame_bytes];
    encode(question, head);
    REQUIRE(send(theirs[0], head, sizeof head, MSG_NOSIGNAL) == ssize_t{sizeof head});
    look();
    CHECK(hears(frame_kind::answer));
    CHECK(endpoint.unread_by(0) == 1);  // the data is where it was
    comm.abort();
    CHECK(hears(frame_kind::alarm));
  }
  for (int const fd : theirs) close(fd);
}
