// SPDX-License-Identifier: Apache-2.0
// A gate among callers and strangers: who belongs to the job gets in, whatever the others do.
// component: tcp
// thread sanitizer: no, there is one thread
// ctest: LABELS waits
// compiled: apart, it replaces operator new
#include "collx/net/gate.hpp"

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "net/at_a_gate.hpp"
#include "net/reserved_port.hpp"
#include "transport/scarce_watches.hpp"
#include "transport/without_descriptors.hpp"

static std::size_t allocations = 0;

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

using namespace at_a_gate;

// Word of the other side's end may take a while, even within a machine.
bool is_closed(owned_fd const& fd) {
  char c;
  return ready_before(fd.get(), POLLIN, now_us() + long_us) && recv(fd.get(), &c, 1, MSG_DONTWAIT) <= 0;
}
bool is_silent(owned_fd const& fd) {
  char c;
  return recv(fd.get(), &c, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

TEST_CASE("a caller is let in, and what follows the handshake is left in the socket") {
  for (std::uint8_t const version : versions_here()) {
    gate door = open_gate(long_us, version);
    CHECK(door.where().is_loopback());
    caller one = call(door.where(), 42);
    guest who;
    REQUIRE(let_in(door, one, who) == status::ok);
    CHECK(who.who.from == 42);
    CHECK(who.who.flow == 1);
    owned_fd const mine = one.take();
    say(mine, "and this");
    REQUIRE(ready_before(who.socket.get(), POLLIN, now_us() + long_us));
    char text[16] = {};
    CHECK(recv(who.socket.get(), text, sizeof text, 0) == 8);
    CHECK(std::string(text) == "and this");
    CHECK((fcntl(who.socket.get(), F_GETFL) & O_NONBLOCK) != 0);
    CHECK((fcntl(mine.get(), F_GETFL) & O_NONBLOCK) != 0);
    CHECK(door.count().welcomed == 1);
    CHECK(door.count().strangers() == 0);
    CHECK(door.in_handshake() == 0);
  }
}

TEST_CASE("many at once are all let in, each once; the descriptor tells when there is work") {
  gate door = open_gate();
  std::vector<caller> callers;
  for (rank_t r = 1; r < 100; ++r) callers.push_back(call(door.where(), r));
  std::vector<int> came(100);
  std::vector<owned_fd> kept;
  std::size_t in = 0, ended = 0;
  for (std::uint64_t const until = now_us() + long_us; (in < 99 || ended < 99) && now_us() < until;) {
    ended = 0;
    for (caller& one : callers) ended += one.progress() == status::ok;
    pollfd const readable{door.fd(), POLLIN, 0};
    pollfd asked = readable;
    if (poll(&asked, 1, 0) == 0) continue;
    guest who;
    while (door.poll(who)) {
      ++came[static_cast<std::size_t>(who.who.from)];
      kept.push_back(std::move(who.socket));
      ++in;
    }
  }
  CHECK(ended == 99);
  for (std::size_t r = 1; r < 100; ++r) CHECK(came[r] == 1);
  CHECK(door.count().welcomed == 99);
}

TEST_CASE("strangers of every kind are dropped and counted, and a caller gets in among them") {
  gate door = open_gate(1'000'000);
  guest who;
  std::vector<owned_fd> strangers;
  collx::replayable_random random(1);
  for (std::size_t const size : {std::size_t{1}, std::size_t{4}, std::size_t{72}, std::size_t{1000}}) {
    strangers.push_back(stranger(door.where()));
    std::string nonsense(size, '\0');
    for (char& each : nonsense) each = static_cast<char>(1 + random.below(60));
    say(strangers.back(), nonsense);
  }
  strangers.push_back(stranger(door.where()));
  say(strangers.back(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  for (int i = 0; i < 3; ++i) stranger(door.where());  // gone at once
  std::size_t const talkers = strangers.size();
  strangers.push_back(stranger(door.where()));  // says nothing
  strangers.push_back(stranger(door.where()));  // begins as we do, and then says nothing
  say(strangers.back(), "collxtcp");
  caller one = call(door.where(), 1);
  REQUIRE(let_in(door, one, who) == status::ok);
  for (std::uint64_t const until = now_us() + long_us; door.count().late < 2 && now_us() < until;) {
    CHECK_FALSE(door.poll(who));
    pollfd readable{door.fd(), POLLIN, 0};
    poll(&readable, 1, 10);
  }
  CHECK(door.count().welcomed == 1);
  CHECK(door.count().refused == talkers);
  CHECK(door.count().left == 3);
  CHECK(door.count().late == 2);
  CHECK(door.in_handshake() == 0);
  CHECK(door.due_us() > now_us() + long_us);  // nothing to wake up for
  for (owned_fd const& each : strangers) CHECK(is_closed(each));
}

TEST_CASE("one byte at a time does not make the time longer") {
  gate door = open_gate(60'000);
  guest who;
  owned_fd const slow = stranger(door.where());
  std::string const greeting = "collxtcp" + std::string("\0\0\0\1", 4) + std::string(60, '\0');
  std::size_t said = 0;
  std::uint64_t const began_us = now_us();
  while (door.count().late == 0 && now_us() < began_us + long_us) {
    if (said < greeting.size() - 1) say(slow, greeting.substr(said++, 1));
    CHECK_FALSE(door.poll(who));
    poll(nullptr, 0, 5);
  }
  CHECK(door.count().late == 1);
  CHECK(said < greeting.size() - 1);  // which would take six times as long
  CHECK(now_us() - began_us >= 60'000);
  CHECK(is_closed(slow));
}

TEST_CASE("time in which nobody looks is no one's delay") {
  constexpr std::uint64_t patience_us = 1'000'000;
  gate door = open_gate(patience_us);
  guest who;
  caller one = call(door.where(), 1);
  owned_fd const waits = stranger(door.where());
  while (door.in_handshake() < 1) CHECK_FALSE(door.poll(who));
  while (door.in_handshake() < 2) {
    (void)one.progress();
    CHECK_FALSE(door.poll(who));
  }
  poll(nullptr, 0, static_cast<int>(patience_us / 1000 * 5 / 4));  // this rank computes
  CHECK_FALSE(door.poll(who));
  CHECK(door.count().late == 0);
  REQUIRE(let_in(door, one, who) == status::ok);
}

TEST_CASE("a full house drops who has been there longest, and callers still get in") {
  gate door = open_gate();
  guest who;
  std::vector<owned_fd> silent;
  // Each is inside before the next one knocks: so it is known who has been there longest.
  for (std::size_t i = 1; i <= 2 * gate::guests_max; ++i) {
    silent.push_back(stranger(door.where()));
    while (door.in_handshake() + door.count().pushed_out < i) CHECK_FALSE(door.poll(who));
  }
  CHECK(door.in_handshake() == gate::guests_max);
  CHECK(door.count().pushed_out == gate::guests_max);
  for (std::size_t i = 0; i < silent.size(); ++i)
    CHECK((i < gate::guests_max ? is_closed(silent[i]) : is_silent(silent[i])));
  caller one = call(door.where(), 1);
  CHECK(let_in(door, one, who) == status::ok);
}

TEST_CASE("a closed gate lets nobody in and holds nothing") {
  gate door = open_gate();
  guest who;
  owned_fd const silent = stranger(door.where());
  CHECK_FALSE(door.poll(who));
  door.close();
  CHECK(door.fd() == -1);
  CHECK(door.in_handshake() == 0);
  CHECK_FALSE(door.poll(who));
  CHECK(is_closed(silent));
}

TEST_CASE("one look accepts few, however many knock") {
  gate door = open_gate();
  guest who;
  std::vector<owned_fd> silent;
  for (int i = 0; i < 3 * gate::accepts_max; ++i) silent.push_back(stranger(door.where()));
  CHECK_FALSE(door.poll(who));
  CHECK(door.in_handshake() == static_cast<std::size_t>(gate::accepts_max));
}

TEST_CASE("looking allocates nothing") {
  gate door = open_gate();
  std::vector<caller> callers;
  for (rank_t r = 1; r <= 3; ++r) callers.push_back(call(door.where(), r));
  owned_fd const rude = stranger(door.where());
  say(rude, "nonsense");
  guest who;
  std::size_t const before = allocations;
  std::size_t in = 0;
  for (std::uint64_t const until = now_us() + long_us; in < 3 && now_us() < until;) {
    for (caller& one : callers) (void)one.progress();
    in += door.poll(who);
  }
  CHECK(allocations == before);
  CHECK(in == 3);
}

TEST_CASE("without a descriptor for who knocks a gate keeps nobody awake, and lets him in later") {
  gate door = open_gate();
  caller one = call(door.where(), 1);
  CHECK(one.progress() == status::pending);
  REQUIRE(ready_before(door.fd(), POLLIN, now_us() + long_us));
  guest who;
  {
    without_descriptors const none;
    for (int look = 0; look < 3; ++look) {
      CHECK_FALSE(door.poll(who));
      CHECK_FALSE(ready_before(door.fd(), POLLIN, now_us() + 1));
      REQUIRE(door.will_be_due());
      while (now_us() < door.due_us()) poll(nullptr, 0, 1);
    }
  }
  CHECK(let_in(door, one, who) == status::ok);
  CHECK_FALSE(door.will_be_due());
}

TEST_CASE("a gate that the system will not watch again after a rest rests once more") {
  gate door = open_gate();
  caller one = call(door.where(), 1);
  CHECK(one.progress() == status::pending);
  REQUIRE(ready_before(door.fd(), POLLIN, now_us() + long_us));
  guest who;
  for (without_descriptors const none; !door.will_be_due();) CHECK_FALSE(door.poll(who));
  {
    scarce_watches::shortage const now;
    for (int rest = 0; rest < 3; ++rest) {
      while (now_us() < door.due_us()) poll(nullptr, 0, 1);
      CHECK_FALSE(door.poll(who));
      CHECK(door.will_be_due());
    }
    std::uint64_t const before_us = now_us();
    CHECK_FALSE(door.poll(who));
    CHECK(door.due_us() > before_us);
  }
  CHECK(let_in(door, one, who) == status::ok);
}

TEST_CASE("a gate lets in also whom the system refuses to watch, and is due until then") {
  gate door = open_gate();
  scarce_watches::shortage const now;
  owned_fd const silent = stranger(door.where());
  caller one = call(door.where(), 1);
  guest who;
  REQUIRE(let_in(door, one, who) == status::ok);
  CHECK(door.due_us() <= now_us() + 1'000);
  say(silent, std::string(100, 'x'));
  while (door.in_handshake() != 0) CHECK_FALSE(door.poll(who));
  CHECK(door.count().refused == 1);
  CHECK_FALSE(door.will_be_due());
}

TEST_CASE("without a descriptor for who knocks the one who has been there longest leaves") {
  gate door = open_gate();
  owned_fd const silent = stranger(door.where());
  guest who;
  while (door.in_handshake() == 0) CHECK_FALSE(door.poll(who));
  caller one = call(door.where(), 1);
  CHECK(one.progress() == status::pending);
  for (without_descriptors const none; door.count().pushed_out == 0;) CHECK_FALSE(door.poll(who));
  CHECK(is_closed(silent));
  CHECK(let_in(door, one, who) == status::ok);
}

// What does not fit into the queue the system drops, and sends again after a second.
TEST_CASE("more callers than the queue of a gate holds come in, each when there is room") {
  gate door(listen_at(address::loopback(0), {}, 1), keys(), expectation{0, 100, mask_of(purpose::link), 4});
  std::vector<caller> callers;
  for (rank_t r = 1; r <= 6; ++r) callers.push_back(call(door.where(), r));
  for (caller& one : callers) (void)one.progress();
  guest who;
  std::size_t in = 0;
  for (std::uint64_t const until = now_us() + long_us; in < callers.size() && now_us() < until;) {
    in += door.poll(who);
    for (caller& one : callers) (void)one.progress();
  }
  CHECK(in == callers.size());
}

TEST_CASE("who has another secret, job, or version is told so at once") {
  gate door = open_gate();
  guest who;
  caller wrong = call(door.where(), 1, keys("another secret of 24 bytes"));
  CHECK(let_in(door, wrong, who) == status::mismatch);
  CHECK(wrong.refusal() == verdict::wrong_secret);
  caller other = call(door.where(), 1, keys().for_job(8));
  CHECK(let_in(door, other, who) == status::mismatch);
  CHECK(other.refusal() == verdict::wrong_job);
  owned_fd const newer = stranger(door.where());
  std::string const version{'\0', '\0', '\0', conversation::version + 1};
  say(newer, "collxtcp" + version + std::string(60, '\0'));
  for (std::uint64_t const until = now_us() + long_us; door.count().refused < 3 && now_us() < until;)
    CHECK_FALSE(door.poll(who));
  std::byte told[100];
  REQUIRE(ready_before(newer.get(), POLLIN, now_us() + long_us));
  REQUIRE(recv(newer.get(), told, sizeof told, 0) == 48);
  CHECK(get_u32(told + 12) == static_cast<std::uint32_t>(verdict::wrong_version));
  CHECK(door.count().welcomed == 0);
  CHECK(door.count().strangers() == 3);
}

TEST_CASE("a caller waits for a gate that is not there yet, or says that it is gone") {
  reserved_port const port;
  address const where = port.where();
  caller gone = call(where, 1, keys(), long_us, unanswered::means_lost);
  while (gone.progress() == status::pending) {
  }
  CHECK(gone.progress() == status::peer_lost);
  CHECK(gone.fd() == -1);
  caller brief = call(where, 1, keys(), 500'000);
  while (brief.progress() == status::pending) poll(nullptr, 0, 1);
  CHECK(brief.progress() == status::timeout);
  CHECK(brief.attempts() >= 1);
  CHECK(brief.why() == ECONNREFUSED);
  caller patient = call(where, 1);
  for (int i = 0; i < 20; ++i) {
    CHECK(patient.progress() == status::pending);
    poll(nullptr, 0, 1);
  }
  gate late(listen_at(where, {}), keys(), expectation{0, 100, mask_of(purpose::link), 4});
  guest who;
  CHECK(let_in(late, patient, who) == status::ok);
}

TEST_CASE("a caller tries every address it was given") {
  gate door = open_gate();
  reserved_port const shut;
  address_list both(shut.where());
  both.add(door.where());
  caller one(both, introduction{purpose::link, 1, 0, 100, 1, 4}, keys(), {}, now_us() + long_us);
  guest who;
  CHECK(let_in(door, one, who) == status::ok);
  CHECK(one.whom() == door.where());
}
