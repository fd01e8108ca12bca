// SPDX-License-Identifier: Apache-2.0
// A peer whose only message to this rank is its last act: it has let this rank in, written and left, and this
// rank hears that it has left before it hears that it was let in.
// component: tcp
// thread sanitizer: no, it runs in one thread
#include <optional>

#include <doctest/doctest.h>

#include "collx/transport/sockets/network_connector.hpp"
#include "collx/transport/tcp.hpp"
#include "transport/held_ends.hpp"
#include "watchdog.hpp"

namespace {

using collx::rank_t;
using collx::status;
using collx::transport::tcp;
using namespace collx::transport::sockets;
namespace net = collx::net;

constexpr std::uint64_t deadline_us = 60'000'000;

collx::transport::tcp_settings settings(bool tls, int flows = 1) {
  collx::transport::tcp_settings chosen;
  chosen.common = {.timeout_us = deadline_us, .staging_bytes = 64 * 1024};
  chosen.tls = tls;
  chosen.limits.flows = flows;
  return chosen;
}

// Connections over a network, of which no more comes here while it is late.
class late_connector : public network_connector {
 public:
  using network_connector::network_connector;
  bool poll(connection& next) noexcept override { return !is_late && network_connector::poll(next); }
  bool is_late = false;
};

// Two ranks of one thread.
struct two {
  two(bool tls, int flows) {
    constexpr char secret[] = "the secret of these tests";
    net::credentials const keys{net::secret::of(std::span(secret, sizeof secret - 1)), 1};
    auto const protects = tls ? net::protection::tls : net::protection::none;
    net::owned_fd doors[2];
    for (net::owned_fd& door : doors) door = net::listen_at(net::address::loopback(0), {});
    net::address const at[2] = {net::local_address(doors[0].get()), net::local_address(doors[1].get())};
    for (rank_t r = 0; r < 2; ++r) {
      collx::array<net::address> known(2);
      known[0] = at[0], known[1] = at[1];
      net::expectation const whom{r, 2, net::mask_of(net::purpose::link),
                                  static_cast<std::uint32_t>(1 + flows), protects};
      connectors[r] = new late_connector(r, std::move(known), net::gate(std::move(doors[r]), keys, whom),
                                         keys, net::socket_settings{}, deadline_us, protects);
      all[r].emplace(tcp::join<tcp>(r, 2, settings(tls, flows), connectors[r]));
    }
    for (int i = 0; i < 1000; ++i) end(0).progress(), end(1).progress();  // that for control stands
  }
  tcp::endpoint& end(rank_t rank) { return all[rank]->engine().endpoint(); }

  late_connector* connectors[2];  // their worlds'
  std::optional<collx::communicator<tcp>> all[2];
};

// Rank 0 looks so often, and what there is to read has been read.
void look(tcp::endpoint& zero) {
  for (int i = 0; i < 100; ++i) zero.progress();
}

}  // namespace

TEST_CASE("tcp: a peer's last message comes, although its goodbye is heard before its welcome") {
  watchdog dog;
  for (bool const tls : {false, true})
    for (int const flows : {1, 2}) {
      CAPTURE(tls);
      CAPTURE(flows);
      two ranks(tls, flows);
      tcp::endpoint& zero = ranks.end(0);
      int const sent = 42;
      int wanted = 0;
      zero.expect(0, 1, reinterpret_cast<std::byte*>(&wanted), sizeof wanted);
      ranks.end(1).send(0, 0, reinterpret_cast<std::byte const*>(&sent), sizeof sent,
                        collx::transport::handover::in_place);
      while (ranks.end(1).unread_by(0) != collx::no_rank) zero.progress(), ranks.end(1).progress();
      ranks.connectors[0]->is_late = true;
      ranks.all[1].reset();
      look(zero);
      for (int i = 0; i < 3; ++i) CHECK(zero.interrupted(1) == status::ok);

      ranks.connectors[0]->is_late = false;
      collx::transport::arrival what{};
      while (!zero.arrived(0, 1, what)) {
        REQUIRE(zero.interrupted(1) == status::ok);
        zero.progress();
      }
      CHECK(wanted == sent);
      while (zero.interrupted(1) == status::ok) zero.progress();  // there is no more
      CHECK(zero.interrupted(1) == status::peer_lost);
    }
}

TEST_CASE("tcp: a peer that leaves without having let this rank in is soon lost") {
  watchdog dog;
  for (bool const tls : {false, true}) {
    CAPTURE(tls);
    two ranks(tls, 1);
    std::byte wanted[4];
    ranks.end(0).expect(0, 1, wanted, sizeof wanted);
    look(ranks.end(0));  // it knocks, and nobody looks
    std::uint64_t const begun_us = collx::now_us();
    ranks.all[1].reset();
    while (ranks.end(0).interrupted(1) == status::ok) ranks.end(0).progress();
    CHECK(ranks.end(0).interrupted(1) == status::peer_lost);
    CHECK(collx::now_us() - begun_us < deadline_us / 2);
  }
}

namespace {

// Only that for control comes: whoever is dialled for data answers nothing.
class silent_for_data : public held_ends {
 public:
  using held_ends::held_ends;
  bool poll(connection& next) noexcept override {
    return !std::exchange(has_given_, true) && held_ends::poll(next);
  }

 private:
  bool has_given_ = false;
};

}  // namespace

TEST_CASE("tcp: a peer that has left, and answers nobody who dials it, is lost at once") {
  watchdog dog;
  int theirs[2];
  {
    auto comm = tcp::join(0, 2, settings(false), new silent_for_data(theirs));
    tcp::endpoint& zero = comm.engine().endpoint();
    std::byte wanted[4];
    zero.expect(0, 1, wanted, sizeof wanted);
    look(zero);
    CHECK(zero.interrupted(1) == status::ok);
    frame goodbye;
    goodbye.kind = frame_kind::goodbye;
    std::byte head[frame_bytes];
    encode(goodbye, head);
    REQUIRE(send(theirs[0], head, sizeof head, MSG_NOSIGNAL) == ssize_t{sizeof head});
    shutdown(theirs[0], SHUT_WR);
    look(zero);
    CHECK(zero.interrupted(1) == status::peer_lost);
  }
  for (int const fd : theirs) close(fd);
}
