// SPDX-License-Identifier: Apache-2.0
// Which connections there are: those that a collective needs, made by the lower rank, and a ring for control;
// as many between two ranks as were chosen. And what is said on that for control does not wait behind data.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <cstring>
#include <set>
#include <vector>

#include <doctest/doctest.h>
#include <netinet/tcp.h>

#include "collx/algo/chain.hpp"
#include "collx/algo/pairwise.hpp"
#include "collx/algo/ring.hpp"
#include "collx/collx.hpp"
#include "collx/transport/sockets/link.hpp"
#include "shared_with_forks.hpp"
#include "transport/held_ends.hpp"
#include "transport/open_connections.hpp"
#include "watched_tcp.hpp"

namespace {

using collx::rank_t;
using communicator = collx::communicator<collx::transport::tcp>;
constexpr rank_t ranks = 8;
constexpr int of_a_link = 2;  // for control, and for data

struct connection {
  int here, there;  // ports
  std::uint64_t received;
};

// Since it stands, the handshake's bytes included.
std::uint64_t bytes_received(int fd) {
  // What the system calls tcpi_bytes_received, which the C library's tcp_info does not have.
  constexpr std::size_t at = 128;
  std::byte info[256] = {};
  socklen_t length = sizeof info;
  std::uint64_t bytes = 0;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &length) == 0) std::memcpy(&bytes, info + at, sizeof bytes);
  return bytes;
}

// What this process has open: who has been called has the port that he listens at.
struct connections {
  connections() {
    int listens_at = 0;
    std::vector<connection> all;
    for_each_open_connection([&](int fd, int here, bool listens) {
      int const there = collx::net::peer_address(fd).port;
      if (listens) listens_at = here;
      else if (there != 0) all.push_back({here, there, bytes_received(fd)});
    });
    for (connection const& each : all) (each.here == listens_at ? accepted : dialled).push_back(each);
  }
  std::vector<connection> dialled, accepted;
};

bool has_links(rank_t higher, rank_t lower) {
  connections const now;
  return std::ssize(now.dialled) == higher * of_a_link && std::ssize(now.accepted) == lower * of_a_link;
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

TEST_CASE("tcp: two ranks have all connections that they are to have, and a large message goes over each") {
  constexpr int for_data = collx::transport::flows::flows_max;
  constexpr std::uint64_t message_bytes = 8 << 20;
  REQUIRE(setenv("COLLX_TCP_FLOWS", "16", 1) == 0);
  collx::transport::tcp_settings chosen = collx::transport::tcp_settings::from_environment();
  unsetenv("COLLX_TCP_FLOWS");
  REQUIRE(chosen.limits.flows == for_data);
  std::uint32_t const slice_bytes = chosen.limits.slice_bytes;
  REQUIRE(slice_bytes * for_data <= message_bytes);
  chosen.common.staging_bytes = 2 * message_bytes;
  shared_with_forks<arrivals> const counted_by;
  auto const rank_main = [&](communicator& comm) {
    std::vector<std::byte> values(message_bytes, static_cast<std::byte>(comm.rank() == 0));
    collx::broadcast<collx::algo::chain>(comm, std::span(values), 0);
    if (values.back() != std::byte{1}) return 2;
    connections const now;
    counted_by->come();
    counted_by->wait_for(2);
    if (comm.rank() == 0) return now.dialled.size() == 1 + for_data && now.accepted.empty() ? 0 : 3;
    std::set<int> ports;
    int carried = 0;
    std::uint64_t received = 0;
    for (connection const& each : now.accepted) {
      ports.insert(each.there);
      carried += each.received > slice_bytes;
      received += each.received;
    }
    // For control there was next to nothing to say.
    if (!now.dialled.empty() || ports.size() != 1 + for_data || carried != for_data) return 4;
    return received > message_bytes && received < 2 * message_bytes ? 0 : 5;
  };
  for (int const code : watched::on_tcp_processes(2, rank_main, chosen)) CHECK(code == 0);
}

TEST_CASE("tcp: a question is answered, and an alarm told, while nobody reads the data") {
  using namespace collx::transport::sockets;
  watchdog dog;
  int theirs[2];
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = 8 << 20;
  {
    auto comm = collx::transport::tcp::join(0, 2, chosen, new held_ends(theirs));
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
