// SPDX-License-Identifier: Apache-2.0
// Two-level algorithms, and every collective that they have on one rank, against the reference.
#pragma once

#include <stdexcept>
#include <vector>

#include "collective/cases.hpp"
#include "collective/forms.hpp"
#include "collx/algo/all.hpp"
#include "collx/algo/hierarchical.hpp"

namespace two_levels {

using collx::rank_t;
namespace algo = collx::algo;

using combinations = collx::type_list<algo::hierarchical<algo::direct_one_shot, algo::ring>,
                                      algo::hierarchical<algo::direct_one_shot, algo::direct_one_shot>,
                                      algo::hierarchical<algo::ring, algo::recursive_halving_doubling>>;

// What runs on this rank, its buffers in private memory.
template <class Transport>
struct on_this_rank {
  collx::communicator<Transport>& comm;
  std::vector<oracle::element> memory;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if (!collx::supports<Schedule>({comm.size(), comm.ranks_per_group()})) return;
    cases::for_each<Contract>(comm.size(), [&](oracle::setting const& how) {
      constexpr auto op = oracle::operator_for<Schedule>();
      oracle::participant<Contract, std::remove_const_t<decltype(op)>> const mine(how, comm.rank(),
                                                                                  memory.data());
      forms::call<forms::blocking<Algorithm>>(comm, how, mine, op);
      if (std::string const wrong = mine.difference(); !wrong.empty())
        throw std::runtime_error(cases::describe<Algorithm, Contract>(how) + ": " + wrong);
      collx::barrier(comm);
    });
  }
};

}  // namespace two_levels
