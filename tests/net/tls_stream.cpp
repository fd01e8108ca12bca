// SPDX-License-Identifier: Apache-2.0
// TLS between two ends of a line on which somebody sits: what arrives is what was sent, or the connection
// ends.
// component: tcp
#include "collx/net/tls_stream.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <openssl/x509.h>

#include "collx/core/random.hpp"
#include "collx/net/fd.hpp"
#include "collx/net/tls_context.hpp"

namespace {

using namespace collx::net;
using collx::status;
using text = std::vector<std::byte>;

digest key(int seed = 1) {
  digest made;
  collx::replayable_random random(static_cast<std::uint64_t>(seed));
  for (std::byte& each : made.bytes) each = static_cast<std::byte>(random.below(256));
  return made;
}

// Two streams and whoever carries bytes from one to the other: it sees them all, and may change them.
class line {
 public:
  enum direction : std::size_t { to_listener, to_dialler };

  explicit line(tls_context const& context, digest const& of_dialler = key(),
                digest const& of_listener = key())
      : line() {
    dialler.reset(context.stream_over(ends_[0].get(), tls_side::dials, of_dialler));
    listener.reset(context.stream_over(ends_[1].get(), tls_side::listens, of_listener));
    REQUIRE((dialler && listener));
  }
  line() {
    for (std::size_t i = 0; i < 2; ++i) {
      int both[2];
      REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
      int const little = 4096;  // so that the socket is full in the middle of a record
      REQUIRE(setsockopt(both[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof little) == 0);
      ends_[i].reset(both[0]);
      carrier_[i].reset(both[1]);
    }
  }

  // Carries what there is. False: there was nothing.
  bool carry() {
    bool const one = carry(to_listener);
    return carry(to_dialler) || one;
  }
  void cut() {
    for (owned_fd& each : carrier_) each.reset();
  }

  // Until both know how the handshake ended, or nothing moves any more.
  std::pair<status, status> greet() {
    status one = status::pending, other = status::pending;
    for (;;) {
      if (one == status::pending) one = dialler->greet();
      if (other == status::pending) other = listener->greet();
      if (!carry() && !carry_on(one, other)) return {one, other};
    }
  }

  [[nodiscard]] int end(std::size_t which) const { return ends_[which].get(); }

  struct stream_owner {
    tls_stream* stream = nullptr;
    ~stream_owner() { delete stream; }
    void reset(tls_stream* made) { stream = made; }
    tls_stream* operator->() const { return stream; }
    explicit operator bool() const { return stream != nullptr; }
  };

  std::function<void(direction, std::size_t place, std::byte&)> alter;
  text seen[2];  // by direction

 private:
  bool carry(direction where) {
    std::byte some[70'000];
    ssize_t const got = carrier_[where] ? recv(carrier_[where].get(), some, sizeof some, MSG_DONTWAIT) : 0;
    if (got <= 0) return false;
    for (std::byte& each : std::span(some, static_cast<std::size_t>(got))) {
      if (alter) alter(where, seen[where].size(), each);
      seen[where].push_back(each);
      late_[where].push_back(each);
    }
    deliver();
    return true;
  }
  void deliver() {
    for (direction const where : {to_listener, to_dialler}) {
      text& rest = late_[where];
      if (rest.empty() || !carrier_[1 - where]) continue;
      ssize_t const sent =
          send(carrier_[1 - where].get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) rest.erase(rest.begin(), rest.begin() + sent);
    }
  }
  // What was delivered last may have been read since.
  bool carry_on(status one, status other) {
    bool const has_late = !late_[0].empty() || !late_[1].empty();
    deliver();
    return has_late && (one == status::pending || other == status::pending);
  }

  owned_fd ends_[2], carrier_[2];
  text late_[2];

 public:
  stream_owner dialler, listener;  // end before their sockets do
};

text random_text(std::size_t bytes, std::uint64_t seed) {
  text made(bytes);
  collx::replayable_random random(seed);
  for (std::byte& each : made) each = static_cast<std::byte>(random.below(256));
  return made;
}

// What one side has sent of a text, and the other has received.
struct transfer {
  tls_stream& from;
  tls_stream& to;
  text const& what;
  collx::replayable_random random;
  std::size_t sent = 0;
  text received;
  bool ended = false, failed = false;

  // One call of each side, with parts of any lengths.
  void step() {
    if (sent < what.size()) {
      iovec parts[5];
      std::size_t at = sent, count = 0;
      while (at < what.size() && count < 5) {
        std::size_t const bytes = std::min<std::size_t>(what.size() - at, 1 + random.below(30'000));
        parts[count++] = {const_cast<std::byte*>(what.data() + at), bytes};
        at += bytes;
      }
      ssize_t const n = from.send(parts, count);
      failed = failed || (n < 0 && errno != EAGAIN);
      if (n > 0) sent += static_cast<std::size_t>(n);
    }
    receive(random.below(2) == 0);
  }
  void receive(bool may_fetch) {
    std::byte here[3][9000];
    iovec parts[3];
    std::size_t const count = 1 + random.below(3);
    for (std::size_t i = 0; i < count; ++i) parts[i] = {here[i], 1 + random.below(9000)};
    ssize_t n = to.receive(parts, count, may_fetch);
    ended = ended || n == 0;
    failed = failed || (n < 0 && errno != EAGAIN);
    for (std::size_t i = 0; i < count && n > 0; ++i) {
      auto const bytes = std::min(static_cast<std::size_t>(n), parts[i].iov_len);
      received.insert(received.end(), here[i], here[i] + bytes);
      n -= static_cast<ssize_t>(bytes);
    }
  }
  [[nodiscard]] bool is_done() const { return ended || failed || received.size() == what.size(); }
  // Nothing but what was sent, in order.
  [[nodiscard]] bool is_prefix() const {
    return received.size() <= what.size() && std::equal(received.begin(), received.end(), what.begin());
  }
};

void run(line& over, transfer& one, int idle_rounds = 200) {
  for (int idle = 0; !one.is_done() && idle < idle_rounds; ++idle) {
    std::size_t const before = one.received.size() + one.sent;
    one.step();
    if (over.carry() || one.received.size() + one.sent != before) idle = 0;
  }
}

}  // namespace

TEST_CASE("two that have the same key find each other, and what one says the other hears") {
  for (std::uint64_t const records_per_key : {tls_context::records_per_key_default, std::uint64_t{3}}) {
    tls_context const context = tls_context::create(records_per_key);
    line over(context);
    REQUIRE(over.greet() == std::pair(status::ok, status::ok));
    text const there = random_text(700'000, 1), back = random_text(300'000, 2);
    transfer one{*over.dialler.stream, *over.listener.stream, there, collx::replayable_random(3), 0, {}};
    transfer other{*over.listener.stream, *over.dialler.stream, back, collx::replayable_random(4), 0, {}};
    for (int idle = 0; (!one.is_done() || !other.is_done()) && idle < 1000; ++idle) {
      one.step();
      other.step();
      if (over.carry()) idle = 0;
    }
    CHECK(one.received == there);
    CHECK(other.received == back);
    CHECK_FALSE((one.failed || other.failed));
    // Nothing of it could be read on the way.
    for (std::size_t const at : {0u, 100'000u, 650'000u}) {
      auto const begin = there.begin() + static_cast<std::ptrdiff_t>(at);
      CHECK(std::search(over.seen[0].begin(), over.seen[0].end(), begin, begin + 16) == over.seen[0].end());
    }
  }
}

// An answer may come before the rest of a message has left.
TEST_CASE("what one side has read, the other has been told is sent, whatever else is stuck") {
  tls_context const context = tls_context::create();
  int in_the_middle = 0;
  for (std::size_t const bytes : {20'000u, 40'000u, 60'000u}) {
    line over(context);
    REQUIRE(over.greet() == std::pair(status::ok, status::ok));
    text const there = random_text(bytes, bytes);
    transfer one{*over.dialler.stream, *over.listener.stream, there, collx::replayable_random(12), 0, {}};
    iovec part{const_cast<std::byte*>(there.data()), there.size()};
    for (int idle = 0; !one.is_done() && idle < 1000; ++idle) {
      if (one.sent < bytes) {
        part = {const_cast<std::byte*>(there.data()) + one.sent, bytes - one.sent};
        ssize_t const n = over.dialler->send(&part, 1);
        if (n > 0) one.sent += static_cast<std::size_t>(n);
        in_the_middle += n > 0 && one.sent < bytes;
      }
      // Who only looks for an answer lets nothing leave that send() has not told of.
      std::byte answer[16];
      iovec to{answer, sizeof answer};
      CHECK(over.dialler->receive(&to, 1, true) == -1);
      if (over.carry()) idle = 0;
      one.receive(true);
      REQUIRE(one.received.size() <= one.sent);
    }
    CHECK(one.received == there);
  }
  CHECK(in_the_middle > 0);
}

TEST_CASE("who says that it ends is heard; what lies here is handed over without a look at the socket") {
  tls_context const context = tls_context::create();
  line over(context);
  REQUIRE(over.greet() == std::pair(status::ok, status::ok));
  text const what = random_text(5000, 5);
  transfer one{*over.dialler.stream, *over.listener.stream, what, collx::replayable_random(6), 0, {}};
  iovec all{const_cast<std::byte*>(what.data()), what.size()};
  REQUIRE(over.dialler->send(&all, 1) == 5000);
  over.dialler->hang_up();
  while (over.carry()) {
  }
  std::byte first[10];
  iovec part{first, sizeof first};
  CHECK(over.listener->receive(&part, 1, false) == -1);
  CHECK(errno == EAGAIN);
  REQUIRE(over.listener->receive(&part, 1, true) == 10);
  REQUIRE(over.listener->receive(&part, 1, false) == 10);  // it came with the first ten
  one.received.assign(what.begin(), what.begin() + 20);
  while (!one.ended && !one.failed) one.receive(true);
  CHECK(one.received == what);
  CHECK_FALSE(one.failed);
}

TEST_CASE("with another key nobody is believed, and nobody waits for ever") {
  tls_context const context = tls_context::create();
  line over(context, key(1), key(2));
  auto const [dialler, listener] = over.greet();
  CHECK(listener == status::peer_lost);
  CHECK(dialler == status::peer_lost);  // it is told
  std::byte some[10];
  iovec part{some, sizeof some};
  CHECK(over.dialler->send(&part, 1) == -1);
  CHECK(over.listener->receive(&part, 1, true) == -1);
  CHECK(errno != EAGAIN);
}

TEST_CASE("whichever byte is changed on the way, nothing wrong arrives, and the connection ends") {
  tls_context const context = tls_context::create();
  text const what = random_text(40'000, 7);
  std::size_t of_handshake[2];
  {
    line over(context);
    REQUIRE(over.greet() == std::pair(status::ok, status::ok));
    for (std::size_t where : {0u, 1u}) of_handshake[where] = over.seen[where].size();
  }
  collx::replayable_random random(8);
  int harmless = 0;
  for (line::direction const where : {line::to_listener, line::to_dialler}) {
    for (int i = 0; i < 150; ++i) {
      // Some in the handshake, some behind it; each fifth is a whole byte that is another.
      std::size_t const place = random.below(static_cast<std::uint32_t>(of_handshake[where] + 500));
      std::byte const flip = i % 5 == 0 ? std::byte{0xff} : std::byte{1} << random.below(8);
      CAPTURE(where);
      CAPTURE(place);
      line over(context);
      over.alter = [&](line::direction going, std::size_t at, std::byte& each) {
        if (going == where && at == place) each ^= flip;
      };
      auto const [dialler, listener] = over.greet();
      bool const is_dialler = where == line::to_listener;  // who sends
      if (dialler != status::ok || listener != status::ok) {
        CHECK((is_dialler ? listener : dialler) !=
              status::ok);  // whom it reached; pending if it looks longer
        continue;
      }
      transfer one{is_dialler ? *over.dialler.stream : *over.listener.stream,
                   is_dialler ? *over.listener.stream : *over.dialler.stream,
                   what,
                   collx::replayable_random(9),
                   0,
                   {}};
      run(over, one);
      REQUIRE(over.seen[where].size() > place);
      CHECK(one.is_prefix());
      // A record that is not encrypted yet has a version, which nobody may look at.
      bool const was_in_handshake = place < of_handshake[where];
      harmless += was_in_handshake;
      CHECK(one.failed != was_in_handshake);
      CHECK((one.received == what) == was_in_handshake);
    }
  }
  CHECK(harmless < 20);
}

TEST_CASE("a line that is cut ends the stream where it was cut") {
  tls_context const context = tls_context::create();
  text const what = random_text(100'000, 10);
  for (std::size_t const after : {0u, 1u, 5000u, 30'000u}) {
    line over(context);
    REQUIRE(over.greet() == std::pair(status::ok, status::ok));
    transfer one{*over.dialler.stream, *over.listener.stream, what, collx::replayable_random(11), 0, {}};
    for (int i = 0; i < 10'000 && one.received.size() < after; ++i) {
      one.step();
      over.carry();
    }
    over.cut();
    for (int i = 0; i < 1000 && !one.ended && !one.failed; ++i) one.step();
    CHECK((one.ended || one.failed));
    CHECK(one.is_prefix());
    CHECK(one.received.size() < what.size());
  }
}

TEST_CASE("who speaks no TLS is nobody's peer") {
  tls_context const context = tls_context::create();
  std::string const begins_a_record("\x16\x03\x03\0\x50\x02\0", 7);
  std::string const says_it_ends("\x15\x03\x03\0\x02\x01\0", 7);
  for (std::string const& said :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(200, '\0'), begins_a_record, says_it_ends})
    for (tls_side const side : {tls_side::dials, tls_side::listens}) {
      line over;
      line::stream_owner one;
      one.reset(context.stream_over(over.end(0), side, key()));
      REQUIRE(one->greet() == status::pending);
      REQUIRE(send(over.end(1), said.data(), said.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(said.size()));
      while (over.carry()) {
      }
      status const now = one->greet();
      // It waits for the rest of a record, as long as there is somebody.
      CHECK(now == (said == begins_a_record ? status::pending : status::peer_lost));
      over.cut();
      CHECK(one->greet() == status::peer_lost);
    }
}

// Whoever is on the path can make a certificate, and speak TLS 1.3 as well as anybody.
TEST_CASE("a listener with a certificate, but without the key, is not believed") {
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  EVP_PKEY* made = nullptr;
  EVP_PKEY_CTX* const maker = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nullptr);
  X509* const certificate = X509_new();
  REQUIRE((EVP_PKEY_keygen_init(maker) == 1 && EVP_PKEY_keygen(maker, &made) == 1));
  X509_gmtime_adj(X509_getm_notBefore(certificate), -10);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 1000);
  X509_set_pubkey(certificate, made);
  REQUIRE(X509_sign(certificate, made, nullptr) != 0);
  REQUIRE(SSL_CTX_use_certificate(context, certificate) == 1);
  REQUIRE(SSL_CTX_use_PrivateKey(context, made) == 1);
  line over;
  SSL* const impostor = SSL_new(context);
  SSL_set_fd(impostor, over.end(1));
  SSL_set_accept_state(impostor);
  tls_context const ours = tls_context::create();
  line::stream_owner dialler;
  dialler.reset(ours.stream_over(over.end(0), tls_side::dials, key()));
  status now = status::pending;
  for (int i = 0; i < 100 && now == status::pending; ++i) {
    now = dialler->greet();
    (void)SSL_do_handshake(impostor);
    over.carry();
  }
  CHECK(now == status::peer_lost);
  SSL_free(impostor);
  SSL_CTX_free(context);
  X509_free(certificate);
  EVP_PKEY_free(made);
  EVP_PKEY_CTX_free(maker);
}
