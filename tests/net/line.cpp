// SPDX-License-Identifier: Apache-2.0
// A connection as its users have it, with TLS in between: nothing is sent or received before greet() has said
// that both sides are ready, so that whoever waits for that to say something sees it.
// component: tcp
#include "collx/net/line.hpp"

#include <array>
#include <cerrno>

#include <doctest/doctest.h>
#include <sys/socket.h>

namespace {

using namespace collx::net;
using collx::status;

// The side that listens, and the stream of the one that dials.
struct two_ends {
  explicit two_ends(tls_context const& tls) {
    int both[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
    dialler_socket.reset(both[0]);
    guest who;
    who.socket.reset(both[1]);
    for (std::size_t i = 0; i < sizeof who.key.bytes; ++i) who.key.bytes[i] = static_cast<std::byte>(i);
    dialler = tls.stream_over(dialler_socket.get(), tls_side::dials, who.key);
    REQUIRE(dialler != nullptr);
    owner_.reset(dialler);
    listener = line(who, &tls);
    REQUIRE(listener);
  }

  owned_fd dialler_socket;
  tls_stream* dialler;
  line listener;

 private:
  owned_stream owner_;
};

bool is_not_yet(ssize_t result) { return result == -1 && errno == EAGAIN; }

}  // namespace

TEST_CASE("line: receive() and send() do not greet, whatever has come") {
  tls_context const tls = tls_context::create();
  two_ends ends(tls);
  std::array<std::byte, 4> text{std::byte{7}}, got{};
  CHECK(ends.dialler->greet() == status::pending);
  CHECK(ends.listener.greet() == status::pending);
  CHECK(ends.dialler->greet() == status::pending);  // it has said all, and waits for a last word
  // All that the listener needs is in its socket now. If one of these greeted, whoever asks greet() whether
  // that has happened just now would be told that it had happened before.
  CHECK(is_not_yet(ends.listener.receive(got)));
  CHECK(is_not_yet(ends.listener.send(text)));
  CHECK_FALSE(ends.listener.has_greeted());
  CHECK(ends.listener.greet() == status::ok);
  CHECK(ends.listener.has_greeted());
  CHECK(ends.dialler->greet() == status::ok);
  CHECK(ends.listener.send(text) == 4);
  iovec const part{got.data(), got.size()};
  CHECK(ends.dialler->receive(&part, 1, true) == 4);
  CHECK(got == text);
}

TEST_CASE("line: an end without the key, or without a peer, fails in greet()") {
  tls_context const tls = tls_context::create();
  two_ends ends(tls), others(tls);
  ends.dialler_socket.reset();
  CHECK(ends.listener.greet() == status::peer_lost);
  CHECK_FALSE(ends.listener.has_greeted());
  REQUIRE(send(others.dialler_socket.get(), "no TLS at all", 13, MSG_NOSIGNAL) == 13);
  CHECK(others.listener.greet() == status::peer_lost);
  std::array<std::byte, 4> got{};
  CHECK(is_not_yet(others.listener.receive(got)));
}

TEST_CASE("line: without TLS it is a socket") {
  int both[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
  line one{owned_fd(both[0])};
  owned_fd other(both[1]);
  std::array<std::byte, 4> text{std::byte{7}}, got{};
  CHECK(one.greet() == status::ok);
  CHECK(is_not_yet(one.receive(got)));
  CHECK(one.send(text) == 4);
  CHECK(recv(other.get(), got.data(), got.size(), 0) == 4);
  CHECK(got == text);
  other.reset();
  CHECK(one.receive(got) == 0);
  CHECK(one.take_socket());
  CHECK_FALSE(one);
}
