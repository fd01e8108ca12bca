// SPDX-License-Identifier: Apache-2.0
// What the tests of single algorithms share: walking the steps of a schedule and asking who talks
// to whom. That schedules are right is the verifier's business (tests/schedule), not looked at here.
#pragma once

#include <vector>

#include <doctest/doctest.h>

#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace steps {

template <class Schedule>
std::vector<collx::primitive> of(collx::problem p) {
  std::vector<collx::primitive> all;
  for (std::int32_t s = 0; s < Schedule::step_count(p); ++s) all.push_back(Schedule::step(p, s));
  return all;
}

// Calls f(problem, step) for all steps of all ranks.
template <class Schedule, class F>
void for_each(collx::rank_t size, collx::rank_t root, F&& f) {
  for (collx::rank_t rank = 0; rank < size; ++rank)
    for (collx::primitive const& step : of<Schedule>({rank, size, root}))
      f(collx::problem{rank, size, root}, step);
}

// The other ranks in a set, in its order.
inline std::vector<collx::rank_t> others(collx::peer_set const& set, collx::problem p) {
  std::vector<collx::rank_t> ranks;
  for (std::int32_t k = 0; k < set.count; ++k)
    if (set.member(k, p.size) != p.rank) ranks.push_back(set.member(k, p.size));
  return ranks;
}

// Whom a rank sends to over all its steps, in order.
template <class Schedule>
std::vector<collx::rank_t> receivers(collx::problem p) {
  std::vector<collx::rank_t> ranks;
  for (collx::primitive const& step : of<Schedule>(p))
    for (collx::rank_t const peer : others(step.to, p)) ranks.push_back(peer);
  return ranks;
}

// One row of a table of costs computed by hand.
struct priced {
  collx::rank_t size;
  collx::cost expected;
};

template <class Schedule>
void check_costs(std::vector<priced> const& table) {
  for (priced const& row : table) {
    collx::cost const documented = collx::documented_cost<Schedule>(row.size);
    CAPTURE(row.size);
    CHECK(documented.rounds == row.expected.rounds);
    CHECK(documented.messages == row.expected.messages);
    CHECK(documented.chunks == row.expected.chunks);
  }
}

}  // namespace steps
