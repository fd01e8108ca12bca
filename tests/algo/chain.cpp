// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/chain.hpp: neighbours only, one step, two chains into the root.
#include "collx/algo/chain.hpp"

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using algo::chain;

static_assert(is_proven<chain::broadcast>);
static_assert(is_proven<chain::reduce>);
static_assert(is_proven<chain::scan>);
static_assert(is_proven<chain::exclusive_scan>);
static_assert(keeps_rank_order<chain::reduce>());

}  // namespace

TEST_CASE_TEMPLATE("chain: every rank has one step and sends at most once, to a neighbour", Schedule,
                   chain::broadcast, chain::reduce) {
  for (rank_t size = 1; size <= 17; ++size)
    for (rank_t root = 0; root < size; ++root)
      for (rank_t rank = 0; rank < size; ++rank) {
        problem const p{rank, size, root};
        CHECK(Schedule::step_count(p) == 1);
        std::vector<rank_t> const to = steps::receivers<Schedule>(p);
        CHECK(to.size() <= 1);
        for (rank_t const peer : to) CHECK((peer == (rank + 1) % size || peer == (rank + size - 1) % size));
      }
}

TEST_CASE("chain broadcast: to the right, and round the end") {
  CHECK(steps::receivers<chain::broadcast>({2, 4, 2}) == std::vector<rank_t>{3});
  CHECK(steps::receivers<chain::broadcast>({3, 4, 2}) == std::vector<rank_t>{0});
  CHECK(steps::receivers<chain::broadcast>({0, 4, 2}) == std::vector<rank_t>{1});
  CHECK(steps::receivers<chain::broadcast>({1, 4, 2}).empty());
}

TEST_CASE("chain reduce: a root in the middle joins both chains with one fan-in") {
  primitive const step = chain::reduce::step({2, 5, 2}, 0);
  CHECK(step.from == peer_set{1, 1, 3});
  CHECK(step.to.empty());
  CHECK(step.complete);
  CHECK(steps::receivers<chain::reduce>({1, 5, 2}) == std::vector<rank_t>{2});
  CHECK(steps::receivers<chain::reduce>({3, 5, 2}) == std::vector<rank_t>{2});
  CHECK(steps::receivers<chain::reduce>({4, 5, 2}) == std::vector<rank_t>{3});
}

TEST_CASE("chain: cost") {
  steps::check_costs<chain::broadcast>({{1, {0, 0, 0}}, {2, {1, 1, 1}}, {8, {7, 1, 1}}});
  steps::check_costs<chain::reduce>({{1, {0, 0, 0}}, {2, {1, 1, 1}}, {8, {7, 1, 1}}});
  CHECK(documented_cost<chain::reduce>(9, 4) == cost{4, 1, 1});
  CHECK(documented_cost<chain::reduce>(9, 8) == cost{8, 1, 1});
}
