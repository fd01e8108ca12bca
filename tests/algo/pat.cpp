// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/pat.hpp: hops from far to near and back, few blocks on the far ones.
#include "collx/algo/pat.hpp"

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using algo::pat;

static_assert(is_proven<pat::all_gather>);
static_assert(is_proven<pat::reduce_scatter>);
static_assert(is_proven<pat::all_reduce>);
static_assert(!keeps_rank_order<pat::reduce_scatter>());

template <class Schedule>
std::vector<std::int32_t> sent_counts(problem p) {
  std::vector<std::int32_t> counts;
  for (primitive const& step : steps::of<Schedule>(p))
    if (!step.to.empty()) counts.push_back(step.operand.count);
  return counts;
}

}  // namespace

TEST_CASE("pat: all_gather goes from far to near and ahead, reduce_scatter from near to far and back") {
  CHECK(steps::receivers<pat::all_gather>({5, 8, 0}) == std::vector<rank_t>{1, 7, 6});
  CHECK(steps::receivers<pat::reduce_scatter>({5, 8, 0}) == std::vector<rank_t>{4, 3, 1});
  CHECK(steps::receivers<pat::all_gather>({5, 6, 0}) == std::vector<rank_t>{3, 1, 0});
}

TEST_CASE("pat: the far hops carry few blocks, whatever the number of ranks") {
  CHECK(sent_counts<pat::all_gather>({3, 8, 0}) == std::vector<std::int32_t>{1, 2, 4});
  CHECK(sent_counts<pat::all_gather>({3, 6, 0}) == std::vector<std::int32_t>{1, 1, 3});
  CHECK(sent_counts<pat::reduce_scatter>({3, 8, 0}) == std::vector<std::int32_t>{4, 2, 1});
  CHECK(sent_counts<pat::reduce_scatter>({3, 7, 0}) == std::vector<std::int32_t>{3, 2, 1});
}

TEST_CASE("pat all_gather: a block is stored where it belongs, and never moved or copied") {
  CHECK(scratch_chunks<pat::all_gather>(shape{9}) == 0);
  for (rank_t size = 2; size <= 33; ++size)
    steps::for_each<pat::all_gather>(size, 0, [](problem, primitive const& step) {
      CHECK(!step.copy);
      if (step.store) CHECK(step.target.where == place::output);
    });
}

TEST_CASE("pat reduce_scatter: nothing that was sent is overwritten") {
  for (rank_t size = 2; size <= 33; ++size)
    steps::for_each<pat::reduce_scatter>(size, 0, [](problem, primitive const& step) { CHECK(!step.copy); });
  CHECK(scratch_chunks<pat::reduce_scatter>(shape{2}) == 0);
  CHECK(scratch_chunks<pat::reduce_scatter>(shape{8}) == 4);
  CHECK(scratch_chunks<pat::reduce_scatter>(shape{9}) == 5);
}

TEST_CASE("pat all_reduce: both halves, without scratch or copies") {
  CHECK(steps::receivers<pat::all_reduce>({5, 8, 0}) == std::vector<rank_t>{4, 3, 1, 1, 7, 6});
  CHECK(scratch_chunks<pat::all_reduce>(shape{9}) == 0);
  for (rank_t size = 2; size <= 33; ++size)
    steps::for_each<pat::all_reduce>(size, 0, [](problem, primitive const& step) { CHECK(!step.copy); });
}

TEST_CASE("pat: cost") {
  steps::check_costs<pat::all_reduce>({{1, {0, 0, 0}}, {2, {2, 2, 2}}, {3, {4, 4, 4}}, {9, {8, 8, 16}}});
  steps::check_costs<pat::all_gather>({{1, {0, 0, 0}}, {2, {1, 1, 1}}, {3, {2, 2, 2}}, {9, {4, 4, 8}}});
  steps::check_costs<pat::reduce_scatter>({{1, {0, 0, 0}}, {2, {1, 1, 1}}, {3, {2, 2, 2}}, {9, {4, 4, 8}}});
}
