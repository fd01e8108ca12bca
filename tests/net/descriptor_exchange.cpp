// SPDX-License-Identifier: Apache-2.0
// Descriptors handed over between processes: every one gets what each other gives, and a rank that is gone,
// or stopped, is named at once, or at the deadline.
#include "collx/net/descriptor_exchange.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collective/all_gather.hpp"
#include "net/desks.hpp"
#include "transport/without_descriptors.hpp"
#include "watched.hpp"

namespace {

using namespace collx;
using namespace desks;

// Every rank that gives, gives memory with its number; returns how much is wrong.
template <class Transport, class Gives, class With>
int hand_over(communicator<Transport>& comm, Gives const& gives, With const& with) {
  auto const size = static_cast<std::size_t>(comm.size());
  int wrong = 0;
  {
    descriptor_exchange exchange("a test", comm.rank());
    array<descriptor_desk> mine(1), all(size);
    mine[0] = exchange.mine();
    auto const bytes = [](auto& what) {
      return std::span(reinterpret_cast<std::byte*>(what.data()), what.size() * sizeof(descriptor_desk));
    };
    all_gather(comm, bytes(mine), bytes(all));
    owned_fd const own = gives(comm.rank()) ? memory_of(comm.rank() + 100) : owned_fd();
    array<owned_fd> theirs(size);
    array<bool> due(size);
    for (std::size_t r = 0; r < size; ++r) due[r] = with(comm.rank(), static_cast<rank_t>(r));
    exchange.run(own.get(), std::span(all.data(), size), std::span(due.data(), size),
                 std::span(theirs.data(), size), now_us() + long_us);
    for (rank_t r = 0; r < comm.size(); ++r) {
      bool const expected = r != comm.rank() && gives(r) && with(comm.rank(), r);
      wrong += content_of(theirs[static_cast<std::size_t>(r)]) != (expected ? r + 100 : -1);
    }
  }
  return wrong;
}
bool always(rank_t) { return true; }
bool with_all(rank_t, rank_t) { return true; }

}  // namespace

TEST_CASE("ranks that are processes get what all others give") {
  for (rank_t const size : {1, 2, 5}) {
    CAPTURE(size);
    int const before = open_descriptors();
    auto const codes = watched::on_processes(size, [](auto& comm) {
      int const found = open_descriptors();
      int wrong = hand_over(comm, always, with_all);
      wrong += hand_over(
          comm, [](rank_t r) { return r % 2 == 0; }, with_all);
      return wrong + (open_descriptors() != found);
    });
    for (std::size_t r = 0; r < codes.size(); ++r) CHECK(codes[r] == 0);
    CHECK(open_descriptors() == before);
  }
}

TEST_CASE("ranks of one process, and ranks that need not exchange with all others") {
  std::vector<int> wrong(6, -1);
  auto const other_half = [](rank_t a, rank_t b) { return a / 3 != b / 3; };
  watched::on_threads(6, [&](auto& comm) {
    wrong[static_cast<std::size_t>(comm.rank())] = hand_over(comm, always, other_half);
  });
  CHECK(wrong == std::vector<int>(6, 0));
}

TEST_CASE("a rank whose process has ended is named at once") {
  descriptor_exchange mine("a test", 0);
  rank_one one([](descriptor_exchange&) {});
  std::string const name = "a test, rank 0: rank 1 (process " + std::to_string(one.process().id()) + ")";
  CHECK(one.process().end() == 0);
  int const before = open_descriptors();
  outcome const met = run_as_zero(mine, one.desk());
  CHECK(met.code == status::peer_lost);
  CHECK(met.says(name + " has ended, or given up"));
  CHECK(open_descriptors() == before - 1);  // less its own desk
}

TEST_CASE("a rank that ends when asked, and one that ends when it has answered and not asked, are named") {
  for (bool const answers : {false, true}) {
    CAPTURE(answers);
    descriptor_exchange mine("a test", 0);
    played_desk one;
    other_process const plays([&] {
      descriptor_exchange::question asked;
      owned_fd const guest = answers ? one.answer(right_answer(mine.mine())) : one.hear(asked);
    });
    one.close();  // the other process alone listens there
    outcome const met = run_as_zero(mine, one.desk());
    CHECK(met.code == status::peer_lost);
    CHECK(met.says("rank 1 (process 4711)"));
    CHECK(static_cast<bool>(met.got) == answers);
  }
}

TEST_CASE("a message whose descriptor there is no room for is not taken for one without") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  owned_fd const from(ends[0]), to(ends[1]);
  char text = 'x';
  owned_fd got;
  for (int i = 0; i < 2; ++i) REQUIRE(net::send_with_fd(from.get(), &text, 1, STDERR_FILENO));
  {
    without_descriptors const limit;
    CHECK(net::receive_with_fd(to.get(), &text, 1, got) == -1);
    CHECK(errno == EMFILE);
    CHECK_FALSE(got);
  }
  CHECK(net::receive_with_fd(to.get(), &text, 1, got) == 1);
  CHECK(got);
}

TEST_CASE("a rank that has no room for a descriptor says so") {
  descriptor_exchange mine("a test", 0);
  played_desk const one;
  other_process const plays([&] {
    owned_fd const guest = one.answer(right_answer(mine.mine()));
    for (;;) pause();
  });
  owned_fd const own = memory_of(7);
  std::vector<owned_fd> others;  // poll() takes no more descriptors at a time than a process may have
  for (int i = 0; i < 100; ++i) others.emplace_back(dup(own.get()));
  outcome met;
  {
    without_descriptors const limit(1);  // for the socket to ask with
    met = run_as(mine, 0, mine.mine(), one.desk(), own.get());
  }
  CHECK(met.code == status::system_failure);
  CHECK_MESSAGE(met.says("a descriptor cannot be received"), met.text);
  CHECK(met.says("raise the limit on descriptors"));
}

TEST_CASE("a rank that gives up is noticed by one that waits for it") {
  descriptor_exchange mine("a test", 0);
  rank_one one([&](descriptor_exchange& exchange) {
    // Nobody is at the desk that it takes for rank 0's.
    descriptor_desk nobody = mine.mine();
    ++nobody.name;
    _exit(run_as(exchange, 1, nobody, exchange.mine(), -1).code == status::peer_lost ? 0 : 1);
  });
  outcome const met = run_as_zero(mine, one.desk());
  CHECK(met.code == status::peer_lost);
  CHECK(one.process().end() == 0);
}

TEST_CASE("a rank that is stopped is named at the deadline") {
  descriptor_exchange mine("a test", 0);
  rank_one one(stay);
  std::uint64_t const began = now_us();
  outcome const met = run_as_zero(mine, one.desk(), 50'000);
  CHECK(now_us() - began >= 50'000);
  CHECK(met.code == status::timeout);
  CHECK(met.says("rank 1 (process " + std::to_string(one.process().id()) +
                 ") has not handed over a descriptor"));
}

TEST_CASE("a rank that answers and never asks is named at the deadline") {
  // Until the answer comes before the deadline, which a busy machine may prevent.
  for (std::uint64_t within_us = 50'000; within_us < long_us; within_us *= 4) {
    descriptor_exchange mine("a test", 0);
    played_desk one;
    other_process const plays([&] {
      owned_fd const guest = one.answer(right_answer(mine.mine()));
      for (;;) pause();
    });
    outcome const met = run_as_zero(mine, one.desk(), within_us);
    CHECK(met.code == status::timeout);
    if (!met.got) continue;
    CHECK(met.says("rank 1 (process 4711) has not asked for a descriptor"));
    return;
  }
  FAIL("no answer came");
}
