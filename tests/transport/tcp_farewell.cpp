// SPDX-License-Identifier: Apache-2.0
// How a rank of `tcp` ends: it stays until its last words are on the peers' machines, and no longer.
#include <chrono>
#include <optional>
#include <thread>

#include <doctest/doctest.h>
#include <sys/ioctl.h>

#include "collx/net/socket.hpp"
#include "transport/held_connector.hpp"
#include "transport/wired.hpp"

namespace {

using collx::transport::tcp;
using collx::transport::sockets::frame;
using collx::transport::sockets::frame_bytes;
using collx::transport::sockets::frame_kind;
using clock_type = std::chrono::steady_clock;
namespace net = collx::net;

// Both connections of rank 0 with rank 1, whose ends this test holds. The one for control takes little that
// is not read.
class held_connections : public held_connector {
 public:
  held_connections(net::owned_fd (&theirs)[2], int (&ours)[2]) {
    net::owned_fd const door = net::listen_at(net::address::loopback(0), {});
    for (int f = 0; f < 2; ++f) {
      int const bytes = 1;  // the system makes it some kilobytes
      if (f == 0) setsockopt(door.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
      ours_[f] = net::begin_connect(net::local_address(door.get()), {});
      REQUIRE(net::ready_before(door.get(), POLLIN, collx::now_us() + 30'000'000));
      theirs[f].reset(accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      ours[f] = ours_[f].get();
    }
  }
};

int unacknowledged(int fd) {
  int bytes = 0;
  ioctl(fd, TIOCOUTQ, &bytes);
  return bytes;
}

// Reads frames until one is an alarm; false: the connection ends before.
bool hears_alarm(int fd) {
  std::byte head[frame_bytes];
  std::size_t have = 0;
  while (net::ready_before(fd, POLLIN, collx::now_us() + 30'000'000)) {
    ssize_t const n = recv(fd, head + have, sizeof head - have, 0);
    if (n <= 0) return false;
    have += static_cast<std::size_t>(n);
    frame what;
    if (have != sizeof head) continue;
    have = 0;
    if (decode(head, what) && what.kind == frame_kind::alarm) return true;
  }
  return false;
}

bool has_ended_within(int fd, int ms) {
  pollfd what{fd, POLLRDHUP, 0};
  return poll(&what, 1, ms) == 1;
}

// A rank with a failure to tell leaves while its peer does not read what it says. Empty: it took so long that
// nothing can be said about it.
std::optional<bool> ends_data_before_word_is_there() {
  net::owned_fd theirs[2];
  int ours[2];
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = 64 * 1024;
  std::optional leaves = tcp::join<tcp>(0, 2, chosen, new held_connections(theirs, ours));
  frame question;
  question.kind = frame_kind::question;
  std::byte head[frame_bytes];
  encode(question, head);
  while (unacknowledged(ours[0]) < 8192) {  // its answers fill what the peer takes
    (void)!::send(theirs[0].get(), head, sizeof head, MSG_NOSIGNAL);
    leaves->engine().endpoint().progress();
  }
  leaves->abort();
  auto const begin = clock_type::now();
  std::thread leaving([&] { leaves.reset(); });
  bool const ended = has_ended_within(theirs[1].get(), 20);
  bool const in_time = clock_type::now() - begin < std::chrono::milliseconds(500);
  bool const is_heard = hears_alarm(theirs[0].get());
  CHECK((is_heard || !in_time));
  CHECK(has_ended_within(theirs[1].get(), 30'000));
  leaving.join();
  return in_time ? std::optional(ended) : std::nullopt;
}

}  // namespace

TEST_CASE("no connection for data ends before the reason can be known") {
  watchdog dog;
  std::optional<bool> ended;
  for (int attempt = 0; attempt < 100 && !ended; ++attempt) ended = ends_data_before_word_is_there();
  CHECK(ended == false);
}

namespace {

// Rank 0 of 4, whose neighbours are gone. Rank 2, which it dials, answers at the third look after a failure.
class slow_to_answer : public held_connector {
 public:
  explicit slow_to_answer(int& theirs) : held_connector(1) {
    int both[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) == 0);
    ours_[0].reset(both[0]);
    theirs = both[1];
  }
  bool poll(collx::transport::sockets::connection& next) noexcept override {
    if (!has_failed || ++looks_ < 3 || !held_connector::poll(next)) return false;
    next.peer = 2;
    return true;
  }
  collx::status outlook(collx::rank_t peer) noexcept override {
    return peer == 2 ? collx::status::ok : collx::status::peer_lost;
  }
  bool has_failed = false;

 private:
  int looks_ = 0;
};

}  // namespace

TEST_CASE("a rank with a failure to tell waits for whom it has dialled, not for neighbours alone") {
  watchdog dog;
  int theirs = -1;
  auto* const connector = new slow_to_answer(theirs);
  net::owned_fd const closes(theirs);
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = 64 * 1024;
  std::optional leaves = tcp::join<tcp>(0, 4, chosen, connector);
  std::byte wanted[4];
  leaves->engine().endpoint().expect(0, 2, wanted, sizeof wanted);
  leaves->abort();
  connector->has_failed = true;
  leaves.reset();
  CHECK(hears_alarm(theirs));
}

TEST_CASE("a rank joined by a pair of sockets does not wait until its peer has read its goodbye") {
  watchdog dog;
  collx::transport::tcp_settings chosen;
  chosen.common.timeout_us = 80'000'000;
  wired::cables all(2);
  std::optional leaves = tcp::join<tcp>(0, 2, chosen, all[0]);
  // Does nothing at all, and is there: nobody closes the connection.
  collx::communicator<tcp> const stays = tcp::join<tcp>(1, 2, chosen, all[1]);
  auto const begin = clock_type::now();
  leaves.reset();
  CHECK(clock_type::now() - begin < std::chrono::seconds(40));
}
