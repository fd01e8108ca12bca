// SPDX-License-Identifier: Apache-2.0
// Those who have no part in handing descriptors over: whatever they say, and whoever they are, they get
// nothing, and hold nobody up.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/net/descriptor_exchange.hpp"
#include "net/desks.hpp"

namespace {

using namespace collx;
using namespace desks;

owned_fd guest_at(descriptor_desk const& desk) {
  owned_fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un at;
  socklen_t const length = desk.address(at);
  if (::connect(fd.get(), reinterpret_cast<sockaddr const*>(&at), length) != 0) fd.reset();
  return fd;
}
void say(owned_fd const& guest, void const* text, std::size_t bytes) {
  if (::send(guest.get(), text, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes)) std::abort();
}
descriptor_exchange::question right_question(descriptor_desk const& desk, rank_t rank) {
  descriptor_exchange::question asked;
  asked.secret[0] = desk.secret[0], asked.secret[1] = desk.secret[1];
  asked.rank = rank;
  return asked;
}
// Whether a guest gets anything before the end.
bool gets_something(owned_fd const& guest) {
  descriptor_exchange::answer said;
  owned_fd fd;
  return net::receive_with_fd(guest.get(), &said, sizeof said, fd) > 0 || fd;
}

}  // namespace
TEST_CASE("whoever took the name of a rank that is gone is not believed") {
  descriptor_exchange mine("a test", 0);
  played_desk const one;
  shared_with_forks<descriptor_exchange::question> heard;
  descriptor_exchange::answer const wrong{{3, 4}};
  other_process plays([&] {
    owned_fd const guest = one.hear(*heard);
    if (!net::send_with_fd(guest.get(), &wrong, sizeof wrong, STDERR_FILENO)) _exit(9);
  });
  outcome const met = run_as_zero(mine, one.desk());
  CHECK(plays.end() == 0);
  CHECK(heard->rank == 0);
  CHECK(one.desk().has_secret(heard->secret));
  CHECK(met.code == status::bad_argument);
  CHECK(met.says("rank 1 (process 4711) was to hand over a descriptor, but what listens in its place"));
  CHECK_FALSE(met.got);
}

TEST_CASE("strangers get nothing, however many, and are in nobody's way") {
  descriptor_exchange mine("a test", 0);
  std::vector<owned_fd> strangers;
  auto const add = [&](descriptor_exchange::question const& asked, std::size_t bytes) {
    strangers.push_back(guest_at(mine.mine()));
    REQUIRE(strangers.back());
    if (bytes != 0) say(strangers.back(), &asked, bytes);
  };
  descriptor_exchange::question const right = right_question(mine.mine(), 1);
  for (int i = 0; i < 100; ++i) add(right, 0);  // silent
  add(right, 8);
  descriptor_exchange::question wrong = right;
  wrong.magic ^= 1;
  add(wrong, sizeof wrong);
  for (int half : {0, 1}) {
    wrong = right;
    wrong.secret[half] ^= 1;
    add(wrong, sizeof wrong);
  }
  for (rank_t const rank : {-1, 0, 2, 1 << 30}) add(right_question(mine.mine(), rank), sizeof right);
  struct {
    descriptor_exchange::question asked;
    char more = 0;
  } longer{right};
  strangers.push_back(guest_at(mine.mine()));
  say(strangers.back(), &longer, sizeof longer);
  rank_one one([&](descriptor_exchange& exchange) {
    outcome const met = run_as(exchange, 1, mine.mine(), exchange.mine(), memory_of(8).get());
    _exit(met.code == status::ok && content_of(met.got) == 7 ? 0 : 1);
  });
  outcome const met = run_as_zero(mine, one.desk());
  CHECK(met.text == "");
  CHECK(content_of(met.got) == 8);
  CHECK(one.process().end() == 0);
  for (owned_fd const& each : strangers) CHECK_FALSE(gets_something(each));
}

// Rank 1 at a desk that answers; what it asks, a test does.
struct answering_desk {
  explicit answering_desk(descriptor_desk const& of_zero)
      : plays([this, &of_zero] {
          owned_fd const guest = one.answer(right_answer(of_zero));
          for (;;) pause();
        }) {}

  played_desk one;
  other_process plays;
};

TEST_CASE("a rank is answered once") {
  descriptor_exchange mine("a test", 0);
  owned_fd const first = guest_at(mine.mine()), second = guest_at(mine.mine());
  descriptor_exchange::question const asked = right_question(mine.mine(), 1);
  say(first, &asked, sizeof asked);
  say(second, &asked, sizeof asked);
  answering_desk const other(mine.mine());
  CHECK(run_as_zero(mine, other.one.desk()).text == "");
  CHECK(gets_something(first));
  CHECK_FALSE(gets_something(second));
}

TEST_CASE("of strangers, however they come and go, the one who came first is shown out first") {
  descriptor_exchange mine("a test", 0);
  played_desk one;
  other_process guests([&] {
    std::vector<owned_fd> strangers;
    auto const one_more = [&]() -> owned_fd& { return strangers.emplace_back(guest_at(mine.mine())); };
    auto const waits_for_end = [&](std::size_t which, std::size_t or_which) {
      pollfd ends[] = {{strangers[which].get(), POLLIN, 0}, {strangers[or_which].get(), POLLIN, 0}};
      if (poll(ends, 2, -1) < 1) _exit(9);
      return ends[0].revents != 0;
    };
    constexpr std::size_t places = 2 + 64;  // one for each rank, and those for strangers
    for (std::size_t i = 0; i < places + 1; ++i) one_more();
    if (!waits_for_end(0, 0)) _exit(8);  // the others are all inside
    strangers[1].reset();
    one_more();  // the newest, who must not be taken for the oldest because he has a place that is free
    one_more();
    std::size_t const newest = places + 1;
    if (!waits_for_end(2, newest)) _exit(7);
    descriptor_exchange::question const asked = right_question(mine.mine(), 1);
    say(strangers[newest], &asked, sizeof asked);
    owned_fd const zero = one.answer(right_answer(mine.mine()));
    _exit(gets_something(strangers[newest]) ? 0 : 6);
  });
  CHECK(run_as_zero(mine, one.desk()).text == "");
  CHECK(guests.end() == 0);
}

constexpr uid_t somebody_else = 65534;

bool may_be_somebody_else() {
  other_process probe([] { _exit(setresuid(somebody_else, somebody_else, somebody_else) == 0 ? 0 : 1); });
  if (probe.end() == 0) return true;
  MESSAGE("SKIPPED: it takes the right to be another user");
  return false;
}

TEST_CASE("a process of another user gets nothing, whatever it knows") {
  if (!may_be_somebody_else()) return;
  descriptor_exchange mine("a test", 0);
  shared_with_forks<arrivals> has_asked;
  descriptor_exchange::question const asked = right_question(mine.mine(), 1);
  other_process guest([&] {
    if (setresuid(somebody_else, somebody_else, somebody_else) != 0) _exit(9);
    owned_fd const here = guest_at(mine.mine());
    say(here, &asked, sizeof asked);
    has_asked->come();
    _exit(gets_something(here) ? 1 : 0);
  });
  has_asked->wait_for(1);
  owned_fd const right = guest_at(mine.mine());
  say(right, &asked, sizeof asked);
  answering_desk const other(mine.mine());
  CHECK(run_as_zero(mine, other.one.desk()).text == "");
  CHECK(guest.end() == 0);
  CHECK(gets_something(right));
}

TEST_CASE("a process of another user in a rank's place is not asked") {
  if (!may_be_somebody_else()) return;
  descriptor_exchange mine("a test", 0);
  rank_one one(stay, somebody_else);
  outcome const met = run_as_zero(mine, one.desk());
  CHECK(met.code == status::bad_argument);
  CHECK(met.says("rank 1 (process " + std::to_string(one.process().id()) + ")"));
  CHECK(met.says("a process of another user"));
}
