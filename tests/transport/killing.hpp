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
  std::uint64_t ended_well = 0;  // calls before
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

// The victim ends at its `at`-th send, or with its `at`-th message read and not acknowledged.
struct killing {
  rank_t size, victim;
  std::uint64_t at;
  std::size_t count;
  bool at_send = true;

  [[nodiscard]] collx::transport::fault_plan plan() const {
    return {.stop_at_send = at_send ? at : 0, .stop_at_consume = at_send ? 0 : at, .kill_process = true};
  }
};

// Calls the collective again and again until it fails, and writes down how.
template <class Transport, class Call>
void call_until_it_fails(collx::communicator<Transport>& comm, record& out, Call const& call) {
  for (int i = 0; i < 1000; ++i) {
    std::uint64_t const before = collx::now_us();
    try {
      call(comm);
      ++out.ended_well;
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
// under a watchdog. `call` makes so many `collectives`.
template <class Started>
void kill_and_check(killing const& how, char const* collective,
                    std::function<void(collx::communicator<typename Started::transport>&)> const& call,
                    std::uint64_t collectives = 1) {
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
        if (comm.rank() == how.victim) comm.engine().endpoint().inject(how.plan());
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
    std::uint64_t const first = 1 + seen.ended_well * collectives;  // the barrier was number 0
    CHECK(seen.report.sequence >= first);
    CHECK(seen.report.sequence < first + collectives);
    CHECK(seen.report.peer == how.victim);
    CHECK(text.find("peer " + std::to_string(how.victim)) != std::string::npos);
    CHECK(seen.took_us < noticed_within_us);
  }
}

// One rank after the other of an all_reduce that goes round a ring: at so many of its sends, one in `stride`,
// and at half as many messages that it takes.
template <class Started>
void kill_at_each(std::uint64_t sends, std::uint64_t stride = 1) {
  for (bool const at_send : {true, false})
    for (std::uint64_t at = 1; at <= (at_send ? sends : sends / 2); at += stride) {
      killing const how{4, static_cast<rank_t>(at % 4), at, 30'000, at_send};
      CAPTURE(at);
      CAPTURE(at_send);
      kill_and_check<Started>(how, "all_reduce", [&](auto& comm) {
        std::vector<int> values(how.count);
        collx::all_reduce<collx::algo::ring>(comm, values);
      });
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
  // root, and must not be that of what goes to it. Where it is to take messages, the other way round.
  rank_t const other = how.victim == 0 ? 1 : 0;
  bool const from_root = Contract::output({other, how.size, how.victim}).count != 0;
  forms::call_with<forms::blocking<Algorithm>, Contract>(comm, from_root == how.at_send ? how.victim : other,
                                                         how.count, std::span(in), std::span(out),
                                                         collx::sum);
}

// In a scan the last rank never sends, and nobody waits for it; the first one takes nothing.
[[nodiscard]] inline rank_t victim_in(oracle::collective const& what, rank_t size, std::uint64_t drawn,
                                      bool at_send) {
  bool const scans = what.from_all && what.contributors({0, size, 0}) != size;
  if (!scans) return static_cast<rank_t>(drawn % static_cast<std::uint64_t>(size));
  return at_send ? 0 : size - 1;
}

// Sizes, victims, sends, messages taken and counts for one schedule.
template <class Started>
void kill_in(schedule_to_call<typename Started::transport> const& called) {
  oracle::collective const& what = *called.collective;
  for (rank_t const size : {2, 3, 5}) {
    if (!called.supports(size) || (sample::is_sample && size == 5)) continue;
    // A few elements, and several fragments; the first send, the second, and one further on. Of messages that
    // it takes the first or the second, with three ranks.
    struct moment {
      std::size_t count;
      std::uint64_t at;
      bool at_send = true;
    };
    for (moment const& when : {moment{3, 1}, {3, 4}, {30'000, 2}, {3, 2, false}, {30'000, 1, false}}) {
      if (!when.at_send && size != 3) continue;
      killing const how{size, victim_in(what, size, when.at, when.at_send), when.at, when.count,
                        when.at_send};
      CAPTURE(called.algorithm);
      CAPTURE(how.size);
      CAPTURE(how.victim);
      CAPTURE(how.at);
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

// Ranks killed at a send of an all_reduce that the seed draws, or at a message that they take, with the
// number of ranks, their data and the algorithm. A failing seed is printed; COLLX_SEED=number runs it alone,
// COLLX_SEEDS=count another number of them.
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
    killing how{size, static_cast<rank_t>(random.below(static_cast<std::uint32_t>(size))),
                1 + random.below(1u << random.below(8)), 1 + random.below(1u << random.below(17))};
    auto* const drawn = algorithms[random.below(3)];
    how.at_send = random.below(2) == 0;
    CAPTURE(how.size);
    CAPTURE(how.victim);
    CAPTURE(how.at);
    CAPTURE(how.at_send);
    CAPTURE(how.count);
    kill_and_check<Started>(how, contract::name, [&](auto& comm) { drawn(comm, how); });
    return std::string();
  });
}

}  // namespace killing_ranks
