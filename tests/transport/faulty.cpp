// SPDX-License-Identifier: Apache-2.0
// A rank that goes quiet at one send after the other, and with one message after the other unacknowledged, on
// every schedule: nobody hangs, whoever needed it gets an error, and whoever did not has the right result.
// And that faults replay from their seed.
// ctest: TIMEOUT 300
#include "collx/transport/faulty.hpp"

#include <string>

#include <doctest/doctest.h>

#include "collective/schedules.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collective/send_receive.hpp"
#include "sample.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;
using collx::transport::fault_plan;
using faulty_mailbox = collx::transport::faulty<collx::transport::mailbox>;
using faulty_threads = collx::transport::faulty<collx::transport::threads>;

// To which every peer has ended by the time that it asks.
template <class Endpoint>
class deserted_endpoint : public Endpoint {
 public:
  using Endpoint::Endpoint;
  [[nodiscard]] status interrupted(rank_t) noexcept { return status::peer_lost; }
};
struct deserted_threads : collx::transport::threads {
  using endpoint = deserted_endpoint<collx::transport::threads::endpoint>;
};

using entry = schedules::entry<forms::started, faulty_mailbox>;

struct stopped_world {
  using request = collx::request<faulty_mailbox::endpoint>;

  stopped_world(entry const& schedule, oracle::setting const& setting, rank_t victim, fault_plan const& when)
      : called(schedule),
        how(setting),
        quiet(victim),
        ranks(setting.size, when.stop_at_send + when.stop_at_consume, {.staging_bytes = cases::staging_bytes},
              static_cast<std::uint64_t>(schedule.depth(setting.size))) {
    ranks[victim].engine().endpoint().inject(when);
  }

  // Starts the collective everywhere and tests all ranks in turn until every request has ended.
  void run() {
    std::vector<std::vector<oracle::element>> memory;
    std::vector<oracle::participant> all;
    for (rank_t r = 0; r < how.size; ++r) {
      memory.emplace_back(oracle::participant::needed(*called.collective, how.size, how.count));
      all.push_back(called.participant(how, r, memory.back().data()));
    }
    std::vector<request> requests;
    for (rank_t r = 0; r < how.size; ++r)
      requests.push_back(called(ranks[r], how, all[static_cast<std::size_t>(r)]));
    std::vector<status> outcomes(requests.size(), status::pending);
    std::size_t open = requests.size();
    for (int look = 0; open != 0; ++look) {
      REQUIRE(look < 1'000'000);
      for (std::size_t r = 0; r < requests.size(); ++r) {
        if (outcomes[r] != status::pending) continue;
        outcomes[r] = requests[r].try_test();
        // A rank whose last messages were staged is done before they are read. That it is gone shows
        // in what it does next.
        bool const gone = static_cast<rank_t>(r) == quiet && ranks[quiet].engine().endpoint().stopped();
        if (gone && outcomes[r] == status::ok) {
          requests[r] = collx::start::barrier(ranks[quiet]);
          outcomes[r] = status::pending;
        }
        open -= outcomes[r] != status::pending;
      }
    }
    for (std::size_t r = 0; r < outcomes.size(); ++r) check(outcomes[r], static_cast<rank_t>(r), all[r]);
    stopped = ranks[quiet].engine().endpoint().stopped();
    // Nothing works on a communicator that has failed.
    if (outcomes[static_cast<std::size_t>(quiet)] != status::ok)
      CHECK(collx::start::barrier(ranks[quiet]).try_wait() != status::ok);
  }

  void check(status outcome, rank_t rank, oracle::participant const& with) {
    CAPTURE(rank);
    if (outcome == status::ok) {
      CHECK(with.difference() == "");
      return;
    }
    bool const is_quiet = rank == quiet;
    CHECK(outcome == (is_quiet ? status::peer_lost : status::aborted));
    collx::failure_report const& report = ranks[rank].failure();
    CHECK(report.code == outcome);
    CHECK(report.rank == rank);
    if (!is_quiet) {
      CHECK(std::string(report.collective) == called.collective->name);
      CHECK(std::string(report.algorithm) == called.algorithm);
      CHECK(report.sequence == 0);
    }
    CHECK(report.reported_by == (is_quiet ? collx::no_rank : quiet));
    ++failed;
  }

  entry const& called;
  oracle::setting how;
  rank_t quiet;
  collx::bootstrap::mailbox_ranks<faulty_mailbox> ranks;
  int failed = 0;
  bool stopped = false;
};

// `point`: which of the plan's numbers says where it stops.
void stop_at_each(std::uint64_t fault_plan::*point, entry const& called, oracle::setting const& how,
                  rank_t victim) {
  for (std::uint64_t n = 1;; ++n) {
    CAPTURE(n);
    fault_plan when;
    when.*point = n;
    stopped_world world(called, how, victim, when);
    world.run();
    CHECK((world.failed > 0) == world.stopped);
    if (!world.stopped) return;
  }
}

void stop_at_each(entry const& called, oracle::setting const& how, rank_t victim) {
  std::string const what = called.describe(how);
  CAPTURE(what);
  CAPTURE(victim);
  for (bool const at_send : {true, false}) {
    CAPTURE(at_send);
    if (!at_send && how.size > 5) continue;  // what five ranks show, and sooner
    stop_at_each(at_send ? &fault_plan::stop_at_send : &fault_plan::stop_at_consume, called, how, victim);
  }
}

void stop_everywhere(entry const& called) {
  for (rank_t const size : {2, 3, 5, 8}) {
    if (!called.supports(size) || (sample::is_sample && size == 8)) continue;
    for (rank_t victim = 0; victim < size; ++victim)
      stop_at_each(called, {size, 61, false, size / 2, 5}, victim);
    std::size_t const several_fragments = cases::large_count(*called.collective, size);
    if (size == 3)
      for (rank_t const victim : {0, 1}) stop_at_each(called, {size, several_fragments, true, 1, 6}, victim);
  }
}

}  // namespace

TEST_CASE(
    "mailbox: a rank that stops at any send, or before any receipt, leaves nobody hanging, on any schedule") {
  for (auto const& each : schedules::all<forms::started, faulty_mailbox, sample::algorithms>())
    stop_everywhere(each);
}

TEST_CASE("threads: ranks that wait for a rank gone quiet are told who it is") {
  // Up to the third of six sends, and of as many messages that it takes, every other rank still needs what
  // comes later.
  for (std::uint64_t n = 0; n < 6; ++n) {
    fault_plan const when =
        n % 2 == 0 ? fault_plan{.stop_at_send = 1 + n / 2} : fault_plan{.stop_at_consume = 1 + n / 2};
    CAPTURE(n);
    std::atomic<int> told{0};
    watched::on_threads<faulty_threads>(4, [&](collx::communicator<faulty_threads>& comm) {
      if (comm.rank() == 2) comm.engine().endpoint().inject(when);
      std::vector<int> values(1000, comm.rank());
      status const outcome = collx::try_all_reduce<collx::algo::ring>(comm, values);
      if (outcome != status::ok && comm.failure().code == outcome) ++told;
      if (comm.rank() != 2 && outcome == status::aborted && comm.failure().reported_by != 2) told = -100;
    });
    CHECK(told == 4);
  }
}

TEST_CASE("threads: a rank that never calls is a time-out that names it") {
  constexpr std::uint64_t timeout_us = 100'000;
  std::atomic<int> named{0};
  watched::on_threads(3, [&](collx::communicator<collx::transport::threads>& comm) {
    if (comm.rank() == 1) return;
    if (comm.rank() == 0) {
      // It is patient until what rank 2 sends it is here, so that nobody else is late.
      auto& endpoint = comm.engine().endpoint();
      collx::transport::arrival letter;
      while (!endpoint.arrived(0, 2, letter) && endpoint.interrupted(2) == status::ok) sched_yield();
      comm.timeout_us(timeout_us);
    }
    std::vector<int> values(10);
    status const outcome = collx::try_all_reduce<collx::algo::direct_one_shot>(comm, values);
    collx::failure_report const& report = comm.failure();
    bool const is_first = comm.rank() == 0;
    named += outcome == (is_first ? status::timeout : status::aborted) && report.peer == 1 &&
             (is_first ? report.elapsed_us >= timeout_us : report.reported_by == 0);
  });
  CHECK(named == 2);
}

TEST_CASE("faulty: with everything late and out of order, threads give the right result") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    watched::on_threads<faulty_threads>(3, [&](collx::communicator<faulty_threads>& comm) {
      auto const rank = static_cast<std::uint64_t>(comm.rank());
      comm.engine().endpoint().inject({.seed = seed * 8 + rank, .delay_polls_max = 5, .refuse_one_in = 3});
      for (int round = 0; round < 5; ++round) {
        std::vector<int> a(100, comm.rank() + round), b(7, comm.rank());
        auto request = collx::start::all_reduce<collx::algo::ring>(comm, a);
        collx::all_reduce<collx::algo::recursive_doubling>(comm, b);
        request.wait();
        if (a != std::vector<int>(100, 3 + 3 * round) || b != std::vector<int>(7, 3))
          throw std::runtime_error("wrong sum");
      }
    });
  }
}

// A peer may send its last message and end between a look for it and the question after the peer. Who is told
// that it has ended looks once more.
TEST_CASE("faulty: of a peer that has ended nothing is late") {
  using faulty_deserted = collx::transport::faulty<deserted_threads>;
  std::atomic<bool> sent{false};
  watched::on_threads<faulty_deserted>(2, [&](collx::communicator<faulty_deserted>& comm) {
    std::vector<int> value(1, 7);
    if (comm.rank() == 0) {
      collx::send(comm, value, 1);
      sent = true;
      sent.notify_one();
      return;
    }
    sent.wait(false);
    auto& endpoint = comm.engine().endpoint();
    endpoint.inject({.seed = 1, .delay_polls_max = 1'000'000});
    collx::transport::arrival what;
    if (endpoint.interrupted(0) != status::peer_lost) throw std::runtime_error("it has not ended");
    if (!endpoint.arrived(0, 0, what)) throw std::runtime_error("its last message is late");
    collx::receive(comm, value, 0);
    if (endpoint.withheld() != 0) throw std::runtime_error("something was withheld");
  });
}

TEST_CASE("faulty: the same seed delays the same messages") {
  auto const looks_needed = [](std::uint64_t seed) {
    collx::bootstrap::mailbox_ranks<faulty_mailbox> ranks(4, 1);
    for (rank_t r = 0; r < 4; ++r)
      ranks[r].engine().endpoint().inject(
          {.seed = seed + static_cast<std::uint64_t>(r), .delay_polls_max = 50});
    std::vector<std::vector<int>> values(4, std::vector<int>(40, 1));
    std::vector<collx::request<faulty_mailbox::endpoint>> requests;
    for (rank_t r = 0; r < 4; ++r)
      requests.push_back(
          collx::start::all_reduce<collx::algo::ring>(ranks[r], values[static_cast<std::size_t>(r)]));
    std::vector<int> ended(4, 0);
    for (int look = 1; look < 100'000; ++look)
      for (std::size_t r = 0; r < 4; ++r)
        if (ended[r] == 0 && requests[r].try_test() != status::pending) ended[r] = look;
    return ended;
  };
  auto const once = looks_needed(1);
  CHECK(once == looks_needed(1));
  CHECK(once != looks_needed(100));
}
