// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/dissemination.hpp: who tells whom, that no round can be spared, and
// which schedules serve as barriers.
#include "collx/algo/dissemination.hpp"

#include "algo/proven.hpp"
#include "algo/steps.hpp"
#include "collx/algo/all.hpp"
#include "collx/schedule/verify.hpp"

namespace {

using namespace collx;
using barrier = algo::dissemination::barrier;

static_assert(is_proven<barrier>);

// All but the last round.
struct hasty : barrier {
  static constexpr std::int32_t step_count(problem p) { return barrier::step_count(p) - 2; }
};

static_assert(std::same_as<schedule_for<contract::barrier, algo::dissemination>, barrier>);
static_assert(std::same_as<schedule_for<contract::barrier, algo::ring>, algo::ring::all_reduce>);
static_assert(!algorithm_for<algo::dissemination, contract::all_reduce>);
static_assert(!algorithm_for<algo::scatter_all_gather<algo::ring>, contract::barrier>);

}  // namespace

TEST_CASE("dissemination: the ranks 1, 2, 4, ... further round the ring") {
  CHECK(steps::receivers<barrier>({0, 5, 0}) == std::vector<rank_t>{1, 2, 4});
  CHECK(steps::receivers<barrier>({3, 5, 0}) == std::vector<rank_t>{4, 0, 2});
  CHECK(steps::receivers<barrier>({0, 1, 0}).empty());
}

TEST_CASE("dissemination: messages carry nothing") {
  for (rank_t size = 1; size <= 33; ++size)
    steps::for_each<barrier>(size, 0, [](problem, primitive const& step) {
      CHECK(step.operand.count == 0);
      CHECK(step.target.count == 0);
      CHECK_FALSE(step.store);
    });
}

TEST_CASE("dissemination: without its last round some rank leaves too early") {
  for (rank_t size = 2; size <= 33; ++size) {
    verdict const found = verify<hasty>(size, 0, {.cost = false});
    CHECK(found.what == fault::leaves_too_early);
    CHECK(found.rank == 0);
    CHECK(found.peer > 0);
  }
}

TEST_CASE("dissemination: cost") {
  steps::check_costs<barrier>(
      {{1, {0, 0, 0}}, {2, {1, 1, 0}}, {5, {3, 3, 0}}, {8, {3, 3, 0}}, {9, {4, 4, 0}}});
}
