// SPDX-License-Identifier: Apache-2.0
// A process is killed (SIGKILL) in the middle of a collective: what its survivors must report, whatever the
// transport.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/mman.h>

#include "collective/forms.hpp"
#include "collx/algo/all.hpp"
#include "collx/transport/faulty.hpp"
#include "collx/transport/settings.hpp"
#include "sample.hpp"
#include "transport/seeds.hpp"

namespace killing_ranks {

using collx::rank_t;
using collx::status;

inline constexpr std::uint64_t deadline_us = 60'000'000;
// Before the deadline and not because of it: milliseconds, but on a machine that does something else.
inline constexpr std::uint64_t noticed_within_us = deadline_us / 2;

// What the survivors tell the test, in memory that all processes share.
struct record {
  std::atomic<bool> ready{false};
  bool failed = false;
  std::uint64_t took_us = 0;
  collx::failure_report report;
  char text[640] = {};
};

struct shared_records {
  static constexpr std::size_t bytes = 16 * sizeof(record);
  shared_records()
      : all(static_cast<record*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    REQUIRE(static_cast<void*>(all) != MAP_FAILED);
  }
  shared_records(shared_records const&) = delete;
  ~shared_records() { munmap(static_cast<void*>(all), bytes); }
  record& operator[](rank_t rank) { return all[rank]; }
  void clear() { std::memset(static_cast<void*>(all), 0, bytes); }
  record* all;
};

struct killing {
  rank_t size, victim;
  std::uint64_t at_send;
  std::size_t count;
};

// Calls the collective again and again until it fails, and writes down how.
template <class Transport, class Call>
void call_until_it_fails(collx::communicator<Transport>& comm, record& out, Call const& call) {
  for (int i = 0; i < 1000; ++i) {
    std::uint64_t const before = collx::now_us();
    try {
      call(comm);
    } catch (collx::error const& failure) {
      out.took_us = collx::now_us() - before;
      out.report = failure.report();
      std::snprintf(out.text, sizeof out.text, "%s", failure.what());
      out.failed = true;
      return;
    }
  }
}

// `Started`: says by which transport, and run(size, rank_main, timeout_us) runs ranks as processes,
// under a watchdog.
template <class Started>
void kill_and_check(killing const& how, char const* collective,
                    std::function<void(collx::communicator<typename Started::transport>&)> const& call) {
  static shared_records records;
  records.clear();
  auto const codes = Started::run(
      how.size,
      [&](collx::communicator<typename Started::transport>& comm) {
        collx::barrier(comm);
        // The victim must not be gone before the others have left this barrier: nobody would be told of that.
        records[comm.rank()].ready = true;
        for (rank_t r = 0; comm.rank() == how.victim && r < how.size; ++r)
          while (!records[r].ready) sched_yield();
        if (comm.rank() == how.victim)
          comm.engine().endpoint().inject({.stop_at_send = how.at_send, .kill_process = true});
        call_until_it_fails(comm, records[comm.rank()], call);
      },
      collx::transport::settings{.timeout_us = deadline_us, .staging_bytes = 64 * 1024});
  for (rank_t r = 0; r < how.size; ++r) {
    if (r == how.victim) {
      CHECK(codes[static_cast<std::size_t>(r)] == 128 + SIGKILL);
      continue;
    }
    record const& seen = records[r];
    std::string const text = seen.text;
    CAPTURE(r);
    CAPTURE(text);
    CHECK(codes[static_cast<std::size_t>(r)] == 0);
    REQUIRE(seen.failed);
    CHECK((seen.report.code == status::peer_lost || seen.report.code == status::aborted));
    CHECK(std::strstr(seen.text, collective) != nullptr);
    CHECK(text.find("#" + std::to_string(seen.report.sequence) + " ") != std::string::npos);
    CHECK(seen.report.peer == how.victim);
    CHECK(text.find("peer " + std::to_string(how.victim)) != std::string::npos);
    CHECK(seen.took_us < noticed_within_us);
  }
}

// A schedule behind a pointer: what is checked is compiled once for all of them.
template <class Transport>
struct schedule_to_call {
  char const* algorithm;
  oracle::collective const* collective;
  bool (*supports)(collx::shape);
  void (*call)(collx::communicator<Transport>&, killing const&);
};

template <class Algorithm, class Contract, class Transport>
void call(collx::communicator<Transport>& comm, killing const& how) {
  static std::vector<int> in, out;
  in.resize(how.count * static_cast<std::size_t>(how.size));
  out.resize(in.size());
  // A rank that never sends would not be killed: the victim must be the root of what comes from the
  // root, and must not be that of what goes to it.
  rank_t const other = how.victim == 0 ? 1 : 0;
  bool const from_root = Contract::output({other, how.size, how.victim}).count != 0;
  forms::call_with<forms::blocking<Algorithm>, Contract>(comm, from_root ? how.victim : other, how.count,
                                                         std::span(in), std::span(out), collx::sum);
}

// Sizes, victims, sends and counts for one schedule.
template <class Started>
void kill_in(schedule_to_call<typename Started::transport> const& called) {
  oracle::collective const& what = *called.collective;
  for (rank_t const size : {2, 3, 5}) {
    if (!called.supports(size) || (sample::is_sample && size == 5)) continue;
    // A few elements, and several fragments; the first send, the second, and one further on.
    for (auto const& [count, at_send] : {std::pair<std::size_t, std::uint64_t>{3, 1}, {3, 4}, {30'000, 2}}) {
      // In a scan the last rank never sends, and nobody waits for it.
      rank_t const senders = what.contributors({0, size, 0}) == size || !what.from_all ? size : 1;
      killing const how{size, static_cast<rank_t>(at_send) % senders, at_send, count};
      CAPTURE(called.algorithm);
      CAPTURE(how.size);
      CAPTURE(how.victim);
      CAPTURE(how.at_send);
      CAPTURE(how.count);
      kill_and_check<Started>(how, what.name, [&](auto& comm) { called.call(comm, how); });
    }
  }
}

template <class Started>
void kill_in_every_schedule() {
  using transport = typename Started::transport;
  std::vector<schedule_to_call<transport>> all;
  collx::for_each_schedule<sample::algorithms, collx::contract::all>(
      [&]<class Algorithm, class Contract, class Schedule>() {
        all.push_back({Algorithm::name, &oracle::collective_of<Contract>, &collx::supports<Schedule>,
                       &call<Algorithm, Contract, transport>});
      });
  for (auto const& each : all) kill_in<Started>(each);
}

// Ranks killed at a send of an all_reduce that the seed draws, with the number of ranks, their data and the
// algorithm. A failing seed is printed; COLLX_SEED=number runs it alone, COLLX_SEEDS=count another number of
// them.
template <class Started>
void kill_from_seeds(std::uint64_t count, char const* program) {
  using transport = typename Started::transport;
  using contract = collx::contract::all_reduce;
  void (*const algorithms[])(collx::communicator<transport>&, killing const&) = {
      &call<collx::algo::ring, contract, transport>, &call<collx::algo::direct_two_shot, contract, transport>,
      &call<collx::algo::recursive_halving_doubling, contract, transport>};
  seeds::for_each_seed(count, program, [&](std::uint64_t seed) {
    collx::replayable_random random(seed);
    auto const size = static_cast<rank_t>(2 + random.below(5));
    killing const how{size, static_cast<rank_t>(random.below(static_cast<std::uint32_t>(size))),
                      1 + random.below(1u << random.below(8)), 1 + random.below(1u << random.below(17))};
    auto* const drawn = algorithms[random.below(3)];
    CAPTURE(how.size);
    CAPTURE(how.victim);
    CAPTURE(how.at_send);
    CAPTURE(how.count);
    kill_and_check<Started>(how, contract::name, [&](auto& comm) { drawn(comm, how); });
    return std::string();
  });
}

}  // namespace killing_ranks
