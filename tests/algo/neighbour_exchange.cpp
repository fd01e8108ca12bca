// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/neighbour_exchange.hpp: neighbours by turns, and pairs of blocks.
#include "collx/algo/neighbour_exchange.hpp"

#include "algo/steps.hpp"
#include "collx/schedule/proves.hpp"

namespace {

using namespace collx;
using gathering = algo::neighbour_exchange::all_gather;

static_assert(proves<gathering, 1, 8>);
static_assert(gathering::supports(1) && gathering::supports(2) && !gathering::supports(3));

}  // namespace

TEST_CASE("neighbour_exchange: left and right by turns, even and odd ranks the other way round") {
  CHECK(steps::receivers<gathering>({2, 8, 0}) == std::vector<rank_t>{3, 1, 3, 1});
  CHECK(steps::receivers<gathering>({5, 8, 0}) == std::vector<rank_t>{4, 6, 4, 6});
  CHECK(steps::receivers<gathering>({0, 8, 0}) == std::vector<rank_t>{1, 7, 1, 7});
}

TEST_CASE("neighbour_exchange: one block, then pairs from ever further away") {
  std::vector<std::int32_t> stored;
  for (primitive const& step : steps::of<gathering>({4, 8, 0}))
    if (!step.from.empty()) stored.push_back(step.target.first);
  CHECK(stored == std::vector<std::int32_t>{5, 2, 6, 0});
  for (rank_t size = 4; size <= 32; size += 2)
    steps::for_each<gathering>(size, 0, [](problem, primitive const& step) {
      if (!step.from.empty() && !step.to.empty()) CHECK(step.target.count == 2);
    });
}

TEST_CASE("neighbour_exchange: cost") {
  steps::check_costs<gathering>(
      {{1, {0, 0, 0}}, {2, {1, 1, 1}}, {4, {2, 2, 3}}, {6, {3, 3, 5}}, {16, {8, 8, 15}}});
}
