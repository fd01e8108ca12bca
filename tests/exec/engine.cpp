// SPDX-License-Identifier: Apache-2.0
// Requests: many in flight, tested and waited for in any order, mixed with blocking calls, dropped
// while in flight; and what a failure does to a communicator.
#include <poll.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_reduce_fixed_tree.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/exchange.hpp"
#include "collx/collective/group.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/send_receive.hpp"
#include "require.hpp"
#include "shared_with_forks.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;
using communicator = collx::communicator<collx::transport::threads>;
using request = collx::request<collx::transport::threads::endpoint>;

template <class F>
void on_ranks(rank_t size, F const& f) {
  watched::on_threads(size, [&](communicator& comm) { f(comm); });
}

// A vector whose sum over all ranks is known.
std::vector<int> numbers(communicator const& comm, int salt, std::size_t count = 300) {
  return std::vector<int>(count, comm.rank() + 10 * salt);
}
std::vector<int> total(communicator const& comm, int salt, std::size_t count = 300) {
  int const n = comm.size();
  return std::vector<int>(count, n * (n - 1) / 2 + 10 * salt * n);
}

void wait_by_testing(request& r) {
  while (!r.test()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("several requests in flight, waited for in the order they were started, backwards, and by test") {
  for (rank_t const size : {1, 2, 3, 4})
    on_ranks(size, [](communicator& comm) {
      for (int order = 0; order < 3; ++order) {
        constexpr int count = 7;
        std::vector<std::vector<int>> values;
        for (int i = 0; i < count; ++i) values.push_back(numbers(comm, i, 100u << i));
        std::vector<request> all;
        for (auto& each : values) all.push_back(collx::start::all_reduce<collx::algo::ring>(comm, each));
        for (std::size_t i = 0; i < count; ++i) {
          if (order == 0) all[i].wait();
          if (order == 1) all[count - 1 - i].wait();
          if (order == 2) wait_by_testing(all[i * 3 % count]);
        }
        for (int i = 0; i < count; ++i)
          require(values[static_cast<std::size_t>(i)] == total(comm, i, 100u << i),
                  "sum " + std::to_string(i));
      }
    });
}

TEST_CASE("a request that waits behind one that fails does not begin, and fails as that did") {
  using flat = collx::algo::direct_one_shot;
  std::atomic<bool> done{false};
  on_ranks(2, [&](communicator& comm) {
    if (comm.rank() == 1) {
      done.wait(false);
      auto& endpoint = comm.engine().endpoint();
      collx::transport::arrival letter;
      int const lane = 1;
      require(endpoint.arrived(lane, 0, letter), "nothing of the first has come");
      endpoint.consume(lane, 0);
      require(!endpoint.arrived(lane, 0, letter), "the one behind it began");
      return;
    }
    comm.timeout_us(20'000);
    std::vector<int> values(8, 1), all(16);
    request fails = collx::start::all_reduce<flat>(comm, values);
    request beside = collx::start::barrier<flat>(comm);
    request behind = collx::start::all_gather<flat>(comm, values, all);
    status const first = fails.try_wait();
    std::string told;
    try {
      behind.wait();
    } catch (collx::error const& error) {
      told = error.what();
    }
    done = true;
    done.notify_all();
    require(first == status::timeout, "the first did not time out");
    require(told.find("all_reduce<direct_one_shot> #0 on rank 0: timeout") != std::string::npos, told);
    require(beside.try_wait() != status::ok, "the one beside it ended well");
  });
}

TEST_CASE("mailbox: what a failed request was given is not delivered any more") {
  using flat = collx::algo::direct_one_shot;
  collx::bootstrap::mailbox_ranks<> world(2, 1);
  std::vector<int> in(2000, 1), out(2000, 0), none;
  auto sends = collx::start::reduce<flat>(world[0], in, none, collx::sum, 1);
  world[0].abort();
  CHECK(sends.try_wait() == status::aborted);
  in.assign(in.size(), 1000);  // whatever its owner does with it now
  std::vector<int> const own(2000, 1);
  auto receives = collx::start::reduce<flat>(world[1], own, out, collx::sum, 1);
  CHECK(receives.try_wait() == status::aborted);
  CHECK(out == std::vector<int>(2000, 0));
}

TEST_CASE("more requests than there is room for: start waits for the oldest") {
  on_ranks(3, [](communicator& comm) {
    constexpr std::size_t count = 3 * communicator::engine_type::request_count + 1;
    std::vector<std::vector<int>> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(numbers(comm, static_cast<int>(i)));
    std::vector<request> all;
    for (auto& each : values)
      all.push_back(collx::start::all_reduce<collx::algo::direct_two_shot>(comm, each));
    // Backwards: the first ones gave up their places long ago.
    while (!all.empty()) {
      all.back().wait();
      all.pop_back();
    }
    for (std::size_t i = 0; i < count; ++i)
      require(values[i] == total(comm, static_cast<int>(i)), "sum " + std::to_string(i));
  });
}

TEST_CASE("blocking calls while requests are in flight") {
  on_ranks(4, [](communicator& comm) {
    for (int round = 0; round < 20; ++round) {
      std::vector<int> a = numbers(comm, 1, 5000), b = numbers(comm, 2), c = numbers(comm, 3);
      std::vector<int> gathered(4);
      auto first = collx::start::all_reduce<collx::algo::recursive_doubling>(comm, a);
      collx::all_reduce(comm, b);
      auto second = collx::start::all_reduce<collx::algo::ring>(comm, c);
      rank_t const me = comm.rank();
      collx::all_gather(comm, std::span<int const>(&me, 1), gathered);
      collx::barrier(comm);
      second.wait();
      first.wait();
      require(a == total(comm, 1, 5000) && b == total(comm, 2) && c == total(comm, 3), "sums");
      require(gathered == std::vector<int>{0, 1, 2, 3}, "gathered");
    }
  });
}

TEST_CASE("ranks may wait for their requests in different orders") {
  on_ranks(3, [](communicator& comm) {
    for (int round = 0; round < 20; ++round) {
      std::vector<int> a = numbers(comm, 1, 4000), b = numbers(comm, 2, 3000), c = numbers(comm, 3, 2000);
      request all[] = {collx::start::all_reduce<collx::algo::ring>(comm, a),
                       collx::start::all_reduce<collx::algo::ring>(comm, b),
                       collx::start::all_reduce<collx::algo::ring>(comm, c)};
      for (int i = 0; i < 3; ++i) all[(i + comm.rank()) % 3].wait();
      require(a == total(comm, 1, 4000) && b == total(comm, 2, 3000) && c == total(comm, 3, 2000), "sums");
    }
  });
}

TEST_CASE("a wait for a request behind others lasts as long as one of those gets on") {
  on_ranks(2, [](communicator& comm) {
    comm.timeout_us(2'500'000);
    // Rank 1 lets one go each 0.6 s, rank 0 waits for the last: 4.8 s, with no wait longer than 1.2 s, since
    // the requests of two lanes take turns, and whatever a thread is held up.
    constexpr int count = 8;
    std::vector<std::vector<int>> values;
    for (int i = 0; i < count; ++i) values.push_back(numbers(comm, i, 2));
    std::vector<request> all;
    for (auto& each : values) {
      if (comm.rank() == 1) poll(nullptr, 0, 600);
      all.push_back(collx::start::all_reduce<collx::algo::direct_one_shot>(comm, each));
    }
    for (int i = count; i-- > 0;) all[static_cast<std::size_t>(i)].wait();
    for (int i = 0; i < count; ++i) require(values[static_cast<std::size_t>(i)] == total(comm, i, 2), "sums");
  });
}

TEST_CASE("a request that is destroyed in flight finishes first, and so does a communicator's last") {
  on_ranks(3, [](communicator& comm) {
    std::vector<int> a = numbers(comm, 1), b = numbers(comm, 2);
    { auto const dropped = collx::start::all_reduce<collx::algo::ring>(comm, a); }
    require(a == total(comm, 1), "destroyed");
    auto replaced = collx::start::all_reduce<collx::algo::ring>(comm, b);
    replaced = request();
    collx::barrier(comm);
    require(b == total(comm, 2), "replaced");
  });
}

TEST_CASE("an empty request is done") {
  request nothing;
  CHECK(nothing.test());
  CHECK(nothing.try_test() == status::ok);
  CHECK(nothing.try_wait() == status::ok);
  nothing.wait();
  on_ranks(2, [](communicator& comm) {
    std::vector<int> none;
    require(collx::start::all_reduce(comm, none).test(), "a count of 0 is done at once");
    std::vector<int> a = numbers(comm, 1);
    auto once = collx::start::all_reduce(comm, a);
    once.wait();
    once.wait();
    require(once.test() && once.try_wait() == status::ok, "twice");
    auto moved = std::move(once);
    require(moved.test(), "moved");
  });
}

TEST_CASE("sequence numbers count collectives, whether they block or are started") {
  on_ranks(2, [](communicator& comm) {
    std::vector<int> a = numbers(comm, 1);
    collx::all_reduce(comm, a);
    collx::start::all_reduce(comm, a).wait();
    collx::barrier(comm);
    require(comm.engine().sequence() == 3, "three collectives");
  });
}

TEST_CASE("a cursor tells where a request stands") {
  collx::bootstrap::mailbox_ranks<> ranks(3, 1);
  std::vector<int> values(10);
  auto waiting = collx::start::all_reduce<collx::algo::ring>(ranks[0], values);
  int seen = 0;
  ranks[0].engine().for_each_in_flight(
      [&](char const* collective, std::uint64_t sequence, collx::exec::cursor const& at) {
        ++seen;
        CHECK(std::string(collective) == "all_reduce");
        CHECK(sequence == 0);
        CHECK(at.step == 1);
        CHECK(at.waits_for == 2);
        CHECK(at.step_count == 6 - 1);
        CHECK(at.bytes == 16);
      });
  CHECK(seen == 1);
  ranks[0].abort();
  CHECK(waiting.try_wait() == status::aborted);
}

TEST_CASE("a failure poisons the communicator, keeps the first report, and every call says so") {
  arrivals through;
  on_ranks(2, [&](communicator& comm) {
    std::vector<int> a = numbers(comm, 1);
    collx::all_reduce(comm, a);
    if (comm.rank() == 1) return through.come();  // and is never seen again
    through.wait_for(1);  // or the time-out would hit it in the call above
    comm.timeout_us(30'000);
    std::string text;
    try {
      collx::all_reduce<collx::algo::ring>(comm, a, collx::max);
    } catch (collx::error const& failure) {
      text = failure.what();
      require(failure.code() == status::timeout, "timeout");
    }
    for (char const* part :
         {"all_reduce<ring>", "#1", "rank 0", "peer 1", "600 bytes", "timeout", "step 1 of 3"})
      require(text.find(part) != std::string::npos, text + " lacks " + part);
    require(collx::try_all_reduce(comm, a) == status::timeout, "again");
    require(collx::try_barrier(comm) == status::timeout, "barrier");
    require(collx::start::all_reduce(comm, a).try_wait() == status::timeout, "started");
    require(comm.failure().sequence == 1 && comm.failure().elapsed_us >= 30'000, "the first failure is kept");
    std::vector<int> none;
    require(collx::try_all_reduce(comm, none) == status::timeout, "a count of 0, too");
  });
}

TEST_CASE("a failed communicator fails calls that need no messages, in every form") {
  for (rank_t const size : {1, 2})
    on_ranks(size, [](communicator& comm) {
      std::vector<int> two(2), one(1), none, all(static_cast<std::size_t>(comm.size()));
      auto kept = collx::persistent::all_reduce(comm, none);
      auto alone = collx::persistent::all_gather(comm, one, all);
      collx::group list(comm);
      {
        auto before = collx::start::all_reduce(comm, none);
        require(before.test(), "with nothing to do, and yet not done");
      }
      collx::exchange wrong(comm);
      wrong.send(two, comm.rank());
      wrong.receive(one, comm.rank());
      require(wrong.try_run() != status::ok, "a message of another length");
      status const first = comm.failure().code;
      auto const tells = [&](auto&& request, char const* what) {
        require(request.try_wait() == first, what);
      };
      tells(collx::start::all_reduce(comm, none), "started, a count of 0");
      tells(collx::start::all_reduce<collx::priority::urgent>(comm, none), "urgent");
      tells(collx::start::broadcast(comm, one), "started");
      tells(collx::start::all_reduce_fixed_tree(comm, collx::fixed_tree{1}, none, none), "a tree of none");
      tells(list.start(), "a list of none, started");
      require(list.try_run() == first, "a list of none");
      kept.start();
      tells(kept, "persistent, a count of 0");
      alone.start();
      tells(alone, "persistent");
      auto last = collx::start::all_reduce(comm, none);
      try {
        (void)last.test();
        require(false, "done, and well");
      } catch (collx::error const& failure) {
        require(failure.code() == first, failure.what());
      }
      require(last.test(), "was told already");
    });
}

TEST_CASE("a request that had to give up its place to later ones still tells that it failed") {
  on_ranks(2, [](communicator& comm) {
    if (comm.rank() == 1) return;
    comm.timeout_us(30'000);
    std::vector<int> a = numbers(comm, 1);
    std::vector<request> all;
    for (int i = 0; i < 20; ++i) all.push_back(collx::start::all_reduce<collx::algo::ring>(comm, a));
    for (request& each : all) require(each.try_wait() != status::ok, "each failed");
  });
}

TEST_CASE("without patience what is not there is a failure, and what is there is not") {
  arrivals sent;
  on_ranks(2, [&](communicator& comm) {
    int word = 7;
    std::span<int> const one(&word, 1);
    if (comm.rank() == 0) {
      collx::send(comm, one, 1);
      sent.come();
      sent.wait_for(2);  // or this rank's end would be seen, and not the time-out
      return;
    }
    sent.wait_for(1);
    comm.timeout_us(0);
    word = 0;
    collx::receive(comm, one, 0);
    require(word == 7, "what was there");
    require(collx::try_receive(comm, one, 0) == status::timeout, "what was not");
    sent.come();
  });
}

TEST_CASE("abort ends every wait, blocking or started, on every rank") {
  for (bool const started : {false, true})
    on_ranks(4, [&](communicator& comm) {
      if (comm.rank() == 2) return comm.abort();
      std::vector<int> a = numbers(comm, 1);
      status outcome = status::ok;
      if (started) {
        auto r = collx::start::all_reduce<collx::algo::ring>(comm, a);
        while ((outcome = r.try_test()) == status::pending) std::this_thread::yield();
      } else {
        outcome = collx::try_all_reduce<collx::algo::ring>(comm, a);
      }
      require(outcome == status::aborted, "aborted");  // and not only when the deadline had passed
      require(comm.failure().reported_by == 2, "by rank 2");
    });
}

TEST_CASE("a deadline also passes for a program that only tests") {
  on_ranks(2, [](communicator& comm) {
    if (comm.rank() == 1) return;
    comm.timeout_us(30'000);
    std::vector<int> a = numbers(comm, 1);
    auto r = collx::start::all_reduce<collx::algo::ring>(comm, a);
    status outcome;
    while ((outcome = r.try_test()) == status::pending) {}
    require(outcome == status::timeout && comm.failure().peer == 1, "timeout over rank 1");
  });
}
