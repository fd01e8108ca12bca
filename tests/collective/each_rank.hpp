// SPDX-License-Identifier: Apache-2.0
// The matrix as one rank of a transport with blocking calls walks it, in threads or in processes.
#pragma once

#include <stdexcept>

#include "collective/cases.hpp"
#include "collective/forms.hpp"
#include "collx/algo/all.hpp"

namespace each_rank {

using collx::rank_t;

inline std::size_t memory_count(rank_t size) {
  return 64 + (1 + static_cast<std::size_t>(size)) * (9001 / static_cast<std::size_t>(size) + 497) +
         2 * 10007;
}

// Walks the cases that `wanted(setting)` picks, with its data in `memory`; throws at the first
// difference. `Form`: how the collectives are called.
template <template <class> class Form, class Transport, class Wanted>
struct matrix {
  collx::communicator<Transport>& comm;
  oracle::element* memory;
  Wanted wanted;
  std::size_t done = 0;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if (!collx::supports<Schedule>(comm.size())) return;
    cases::for_each<Contract>(comm.size(), [&](oracle::setting const& how) {
      if (!wanted(how)) return;
      constexpr auto op = oracle::operator_for<Schedule>();
      oracle::participant<Contract, std::remove_const_t<decltype(op)>> const mine(how, comm.rank(), memory);
      perform<Form<Algorithm>, Contract>(how, mine, op);
      if (std::string const difference = mine.difference(); !difference.empty())
        throw std::runtime_error(cases::describe<Algorithm, Contract>(how) + ", rank " +
                                 std::to_string(comm.rank()) + ": " + difference);
      ++done;
    });
  }

  template <class Called, class Contract, class Op>
  void perform(oracle::setting const& how, oracle::participant<Contract, Op> const& mine, Op const& op) {
    using result = decltype(forms::call<Called>(comm, how, mine, op));
    if constexpr (std::is_void_v<result>) {
      forms::call<Called>(comm, how, mine, op);
    } else if constexpr (std::is_same_v<result, collx::status>) {
      if (forms::call<Called>(comm, how, mine, op) != collx::status::ok) throw collx::error(comm.failure());
    } else {
      forms::call<Called>(comm, how, mine, op).wait();
    }
  }
};

// Walks the whole matrix on one rank; returns how many collectives that were.
template <template <class> class Form, class Algorithms = collx::algo::all, class Transport, class Wanted>
std::size_t walk(collx::communicator<Transport>& comm, oracle::element* memory, Wanted const& wanted) {
  matrix<Form, Transport, Wanted> all{comm, memory, wanted};
  collx::for_each_schedule<Algorithms, collx::contract::all>(all);
  return all.done;
}

// Through every algorithm's barrier `rounds` times: `arrived` is shared by all ranks.
template <class Transport>
struct barriers {
  collx::communicator<Transport>& comm;
  std::atomic<std::int64_t>& arrived;
  std::int64_t rounds = 5;
  std::int64_t before = 0;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if (!collx::supports<Schedule>(comm.size())) return;
    for (std::int64_t round = 0; round < rounds; ++round) {
      // Relaxed: the barrier itself must order the counting before what follows it.
      arrived.fetch_add(1, std::memory_order_relaxed);
      collx::barrier<Algorithm>(comm);
      before += comm.size();
      if (arrived.load(std::memory_order_relaxed) < before)
        throw std::runtime_error(std::string("barrier<") + Algorithm::name + "> let rank " +
                                 std::to_string(comm.rank()) + " through too early");
    }
  }
};

template <class Transport>
void walk_barriers(collx::communicator<Transport>& comm, std::atomic<std::int64_t>& arrived) {
  collx::for_each_serving<collx::algo::all, collx::contract::barrier>(barriers<Transport>{comm, arrived});
}

}  // namespace each_rank
