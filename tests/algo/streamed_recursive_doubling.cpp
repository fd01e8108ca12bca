// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/streamed_recursive_doubling.hpp: messages are passed on as they come.
#include "collx/algo/streamed_recursive_doubling.hpp"

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using gathering = algo::streamed_recursive_doubling::all_gather;
using staged = algo::recursive_doubling::all_gather;

static_assert(is_proven<gathering>);

}  // namespace

TEST_CASE("streamed_recursive_doubling: the partner of level i gets i+1 messages") {
  CHECK(steps::receivers<gathering>({5, 8, 0}) == std::vector<rank_t>{4, 7, 7, 1, 1, 1});
  CHECK(steps::receivers<gathering>({0, 2, 0}) == std::vector<rank_t>{1});
  // Six ranks: 0 2 4 5 form the core, and 0 stands for 1 too.
  CHECK(steps::receivers<gathering>({0, 6, 0}) == std::vector<rank_t>{2, 4, 4, 1, 1, 1});
  CHECK(steps::receivers<gathering>({1, 6, 0}) == std::vector<rank_t>{0});
}

TEST_CASE("streamed_recursive_doubling: what comes before the last level leaves in the same step") {
  for (rank_t size = 4; size <= 64; size *= 2)
    steps::for_each<gathering>(size, 0, [size](problem p, primitive const& step) {
      if (step.from.empty()) return;
      bool const last_level = (step.from.first ^ p.rank) == size / 2;
      CHECK(step.to.empty() == last_level);
    });
}

TEST_CASE("streamed_recursive_doubling: sizes of the messages") {
  std::vector<std::int32_t> counts;
  for (primitive const& step : steps::of<gathering>({3, 16, 0}))
    if (!step.from.empty()) counts.push_back(step.target.count);
  CHECK(counts == std::vector<std::int32_t>{1, 1, 1, 2, 1, 1, 4, 2, 1, 1});
}

TEST_CASE("streamed_recursive_doubling: rounds and bytes are those of recursive doubling") {
  for (rank_t size = 1; size <= 128; ++size) {
    CHECK(documented_cost<gathering>(shape{size}).rounds == documented_cost<staged>(shape{size}).rounds);
    CHECK(documented_cost<gathering>(shape{size}).chunks == documented_cost<staged>(shape{size}).chunks);
  }
  steps::check_costs<gathering>(
      {{1, {0, 0, 0}}, {2, {1, 1, 1}}, {3, {2, 3, 5}}, {8, {3, 6, 7}}, {9, {4, 10, 19}}});
}

TEST_CASE("streamed_recursive_doubling: the depth is the least that does") {
  for (rank_t const size : {8, 16, 32, 33}) CHECK(minimal_depth<gathering>(size) == gathering::depth(size));
}
