// SPDX-License-Identifier: Apache-2.0
// A paced connection keeps little in the system's queue while long slices go both ways, and else what the
// system gives to all; not much where long ones leave the host; of several connections between two ranks each
// always keeps little.
// component: tcp
#include <vector>

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include "collx/transport/sockets/flow.hpp"
#include "collx/transport/sockets/link.hpp"
#include "collx/transport/sockets/send_queue.hpp"

namespace {

namespace net = collx::net;
namespace sockets = collx::transport::sockets;

constexpr std::size_t long_bytes = 512 * 1024, not_long_bytes = 256 * 1024;
constexpr int usual = 0, little = 64 * 1024, not_much = 128 * 1024;

using sockets::queueing;

// How much may wait there; 0: what the system has for all.
int limit_of(int fd) {
  int value = -1;
  socklen_t length = sizeof value;
  REQUIRE(getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &length) == 0);
  return value;
}

void post_to(sockets::flow& flow, std::byte const* payload, std::size_t bytes) {
  sockets::frame what;
  what.kind = sockets::frame_kind::data;
  what.message_bytes = what.slice_bytes = static_cast<std::uint32_t>(bytes);
  sockets::outgoing_frame& out = flow.push();
  out = {};
  sockets::encode(what, out.head);
  out.payload = payload;
  out.payload_bytes = what.slice_bytes;
}

struct side {
  side(net::owned_fd fd, queueing how) { flow.open(static_cast<net::owned_fd&&>(fd), {}, how); }

  [[nodiscard]] int limit() const { return limit_of(flow.fd()); }

  void post(std::size_t bytes) { post_to(flow, sent.data(), bytes); }

  // What a flow asks of whoever reads it.
  sockets::flow::answer begin(sockets::frame const&, std::byte*& at) {
    at = read.data();
    return sockets::flow::answer::take;
  }
  bool end(sockets::frame const&, std::byte const*) { return ++slices != 0; }

  sockets::flow flow;
  std::vector<std::byte> sent = std::vector<std::byte>(long_bytes, std::byte{7});
  std::vector<std::byte> read = std::vector<std::byte>(long_bytes);
  int slices = 0;
};

struct connection {
  // `takes_bytes`: of the system's buffers on the other side; 0: what it gives to all.
  explicit connection(queueing how, std::size_t takes_bytes = 0) : connection(ends(takes_bytes), how) {}

  // Each posts what it is to send, and all of it arrives.
  void exchange(std::size_t here_bytes, std::size_t there_bytes) {
    int const here_after = here.slices + (there_bytes != 0), there_after = there.slices + (here_bytes != 0);
    if (here_bytes != 0) here.post(here_bytes);
    if (there_bytes != 0) there.post(there_bytes);
    while (here.slices != here_after || there.slices != there_after)
      for (side* const each : {&here, &there}) {
        each->flow.write([](sockets::outgoing_frame const&) {});
        each->flow.read(*each);
        REQUIRE(each->flow.state() == sockets::flow_state::open);
      }
  }

  side here, there;

  using pair = std::pair<net::owned_fd, net::owned_fd>;
  static pair ends(std::size_t takes_bytes = 0);

 private:
  connection(pair both, queueing how)
      : here(static_cast<net::owned_fd&&>(both.first), how),
        there(static_cast<net::owned_fd&&>(both.second), queueing::usual) {}
};

connection::pair connection::ends(std::size_t takes_bytes) {
  net::socket_settings chosen;
  chosen.buffer_bytes = takes_bytes;
  net::owned_fd const door = net::listen_at(net::address::loopback(0, 4), chosen);
  sockaddr_storage at;
  socklen_t const length = net::local_address(door.get()).to_system(at);
  net::owned_fd one(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(connect(one.get(), reinterpret_cast<sockaddr const*>(&at), length) == 0);
  pollfd waiting{door.get(), POLLIN, 0};
  REQUIRE(poll(&waiting, 1, 10'000) == 1);
  net::owned_fd other(accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  REQUIRE(static_cast<bool>(other));
  return {static_cast<net::owned_fd&&>(one), static_cast<net::owned_fd&&>(other)};
}

// What each connection of a link may keep waiting, that for control first.
std::vector<int> limits_of_link(int flows, bool is_paced) {
  sockets::link all(1, collx::transport::flows::distance::network, {flows}, false);
  std::vector<net::owned_fd> others;
  std::vector<int> limits;
  for (int f = 0; f <= flows; ++f) {
    auto [mine, other] = connection::ends();
    others.push_back(static_cast<net::owned_fd&&>(other));
    all.open(f, static_cast<net::owned_fd&&>(mine), {}, is_paced);
    limits.push_back(limit_of(all.at(f).fd()));
  }
  return limits;
}

}  // namespace

TEST_CASE("a paced connection keeps little in the queue while long slices go both ways") {
  connection both(queueing::paced_within_host);
  both.exchange(long_bytes, long_bytes);
  CHECK(both.here.limit() == usual);  // nothing had come when it began
  both.exchange(long_bytes, long_bytes);
  CHECK(both.here.limit() == little);
  for (int alone = 1; alone <= 3; ++alone) {
    both.exchange(long_bytes, 0);
    CHECK(both.here.limit() == little);  // as many may be under way before one comes
  }
  both.exchange(long_bytes, 0);
  CHECK(both.here.limit() == usual);
  both.exchange(0, long_bytes);
  both.exchange(long_bytes, 0);
  CHECK(both.here.limit() == little);
}

TEST_CASE("one that leaves the host keeps not much from the first long slice on") {
  connection both(queueing::paced);
  both.exchange(192 * 1024 - 1, 192 * 1024 - 1);
  CHECK(both.here.limit() == usual);
  both.exchange(not_long_bytes, 0);
  CHECK(both.here.limit() == not_much);
  for (std::size_t const comes : {std::size_t{0}, long_bytes}) {
    both.exchange(long_bytes, comes);
    CHECK(both.here.limit() == not_much);
  }
}

TEST_CASE("a link knows whether what is paced leaves the host") {
  using collx::transport::flows::distance;
  std::vector<std::byte> const slice(long_bytes);
  for (distance const how_far : {distance::host, distance::network, distance::far}) {
    sockets::link one(1, how_far, {1}, false);
    auto [mine, other] = connection::ends();
    one.open(1, static_cast<net::owned_fd&&>(mine), {}, true);
    post_to(one.at(1), slice.data(), slice.size());
    one.at(1).write([](sockets::outgoing_frame const&) {});
    CHECK(limit_of(one.at(1).fd()) == (how_far == distance::host ? usual : not_much));
  }
}

TEST_CASE("a slice counts once, whatever the system takes of it at a time") {
  connection both(queueing::paced_within_host, 64 * 1024);
  both.exchange(long_bytes, long_bytes);
  // The other side reads nothing: the last of these slices wait, some without a byte gone.
  for (int i = 0; i < 2; ++i) both.here.post(long_bytes);
  for (int i = 0; i < 100; ++i) both.here.flow.write([](sockets::outgoing_frame const&) {});
  CHECK(!both.here.flow.idle());
  CHECK(both.here.limit() == little);
  both.there.slices = 1;
  while (both.there.slices != 3) {
    both.here.flow.write([](sockets::outgoing_frame const&) {});
    both.there.flow.read(both.there);
  }
  // Two have gone since one came: a third may, and no fourth.
  both.exchange(long_bytes, 0);
  CHECK(both.here.limit() == little);
  both.exchange(long_bytes, 0);
  CHECK(both.here.limit() == usual);
}

TEST_CASE("shorter slices change nothing") {
  connection both(queueing::paced_within_host);
  for (int i = 0; i < 5; ++i) both.exchange(not_long_bytes, not_long_bytes);
  CHECK(both.here.limit() == usual);
  for (int i = 0; i < 5; ++i) both.exchange(not_long_bytes, long_bytes);
  CHECK(both.here.limit() == usual);
}

TEST_CASE("a connection that is not paced is left alone") {
  connection both(queueing::usual);
  for (int i = 0; i < 5; ++i) both.exchange(long_bytes, long_bytes);
  CHECK(both.here.limit() == usual);
  CHECK(both.there.limit() == usual);
}

TEST_CASE("of several connections for data each keeps little, so that all of them get slices") {
  constexpr int few = 128 * 1024;
  for (bool const is_paced : {false, true}) {
    CHECK(limits_of_link(1, is_paced) == std::vector<int>{usual, usual});
    CHECK(limits_of_link(3, is_paced) == std::vector<int>{usual, few, few, few});
  }
}

TEST_CASE("what a connection of several has taken is little more than its peer has room for") {
  constexpr std::size_t takes = 64 * 1024;
  std::size_t taken[2] = {};
  for (bool const among_others : {false, true}) {
    auto [mine, other] = connection::ends(takes);
    sockets::send_queue queue;
    queue.reset(mine.get(), among_others ? queueing::among_others : queueing::usual);
    std::vector<std::byte> const some(16 * 1024);
    for (ssize_t sent; (sent = send(mine.get(), some.data(), some.size(), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;)
      taken[among_others] += static_cast<std::size_t>(sent);
  }
  CAPTURE(taken[0]);
  CAPTURE(taken[1]);
  CHECK(taken[1] < 512 * 1024);
  CHECK(taken[1] < taken[0] / 2);
}
