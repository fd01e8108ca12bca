// SPDX-License-Identifier: Apache-2.0
// Two-level algorithms, and every collective that they have on one rank, against the reference.
#pragma once

#include <stdexcept>
#include <vector>

#include "collective/schedules.hpp"
#include "collx/algo/hierarchical.hpp"

namespace two_levels {

using collx::rank_t;
namespace algo = collx::algo;

using combinations = collx::type_list<algo::hierarchical<algo::direct_one_shot, algo::ring>,
                                      algo::hierarchical<algo::direct_one_shot, algo::direct_one_shot>,
                                      algo::hierarchical<algo::ring, algo::recursive_halving_doubling>>;

// Walks all cases of the algorithms on this rank, in groups of so many, with buffers in private memory.
template <class Algorithms, class Transport>
void walk(collx::communicator<Transport>& comm, rank_t per_group) {
  std::vector<oracle::element> memory(oracle::reference::index_count * 2);
  comm.ranks_per_group(per_group);
  for (auto const& each : schedules::all<forms::blocking, Transport, Algorithms>()) {
    if (!each.supports({comm.size(), per_group})) continue;
    cases::for_each(*each.collective, comm.size(), [&](oracle::setting const& how) {
      oracle::participant const mine = each.participant(how, comm.rank(), memory.data());
      each(comm, how, mine);
      if (std::string const wrong = mine.difference(); !wrong.empty())
        throw std::runtime_error(each.describe(how) + ": " + wrong);
      collx::barrier(comm);
    });
  }
}

}  // namespace two_levels
