// SPDX-License-Identifier: Apache-2.0
// The matrix as one rank of a transport with blocking calls walks it, in threads or in processes.
#pragma once

#include <atomic>
#include <stdexcept>

#include "collective/schedules.hpp"

namespace each_rank {

using collx::rank_t;

using cases::memory_count;

// Calls a schedule in whatever form, and waits for its end.
template <class Entry, class Transport>
void complete(Entry const& called, collx::communicator<Transport>& comm, oracle::setting const& how,
              oracle::participant const& mine) {
  if constexpr (std::is_void_v<typename Entry::result>) {
    called(comm, how, mine);
  } else if constexpr (std::is_same_v<typename Entry::result, collx::status>) {
    if (called(comm, how, mine) != collx::status::ok) throw collx::error(comm.failure());
  } else {
    called(comm, how, mine).wait();
  }
}

// Ends a walk with these words. A rank that was aborted prints them besides: of threads only the first that
// failed is heard, and a watchdog that has aborted them ends the process before anybody is.
template <class Transport>
[[noreturn]] void tell_where(std::string const& words, collx::communicator<Transport> const& comm) {
  if (comm.failure().code == collx::status::aborted) std::fprintf(stderr, "%s\n", words.c_str());
  throw std::runtime_error(words);
}

// Walks those cases of one schedule that `wanted` picks on one rank, with its data in `memory`;
// throws at the first difference or failure. Returns how many collectives that were.
template <class Entry, class Transport>
std::size_t walk_one(Entry const& called, collx::communicator<Transport>& comm, oracle::element* memory,
                     cases::some const& wanted = {}) {
  std::size_t done = 0;
  if (!called.supports(comm.size())) return done;
  cases::for_each(*called.collective, comm.size(), [&](oracle::setting const& how) {
    if (!wanted(how)) return;
    oracle::participant const mine = called.participant(how, comm.rank(), memory);
    try {
      complete(called, comm, how, mine);
      if (std::string const difference = mine.difference(); !difference.empty())
        throw std::runtime_error(difference);
    } catch (std::exception const& wrong) {
      tell_where(called.describe(how) + ", rank " + std::to_string(comm.rank()) + ": " + wrong.what(), comm);
    }
    ++done;
  });
  return done;
}

// The same for the whole matrix. `Form`: how the collectives are called.
template <template <class> class Form, class Algorithms = collx::algo::all, class Transport>
std::size_t walk(collx::communicator<Transport>& comm, oracle::element* memory,
                 cases::some const& wanted = {}) {
  std::size_t done = 0;
  for (auto const& each : schedules::all<Form, Transport, Algorithms>())
    done += walk_one(each, comm, memory, wanted);
  return done;
}

// Through every algorithm's barrier five times: `arrived` is shared by all ranks.
template <class Transport>
void walk_barriers(collx::communicator<Transport>& comm, std::atomic<std::int64_t>& arrived) {
  std::int64_t before = 0;
  for (auto const& barrier : schedules::barriers<forms::blocking, Transport>()) {
    if (!barrier.supports(comm.size())) continue;
    for (int round = 0; round < 5; ++round) {
      // Relaxed: the barrier itself must order the counting before what follows it.
      arrived.fetch_add(1, std::memory_order_relaxed);
      barrier.perform(comm, {}, {}, {});
      before += comm.size();
      if (arrived.load(std::memory_order_relaxed) < before)
        throw std::runtime_error(std::string("barrier<") + barrier.algorithm + "> let rank " +
                                 std::to_string(comm.rank()) + " through too early");
    }
  }
}

}  // namespace each_rank
