// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/neighbour_exchange.hpp: neighbours by turns, and pairs of blocks.
#include "collx/algo/neighbour_exchange.hpp"

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using gathering = algo::neighbour_exchange::all_gather;

static_assert(is_proven<gathering>);
static_assert(gathering::supports(1) && gathering::supports(2) && gathering::supports(3));
static_assert(counts_for<gathering>() == known_counts::agreed);  // all_gather_v

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

TEST_CASE(
    "neighbour_exchange: an odd number's last rank talks to its neighbours only, and is told all in one "
    "step") {
  for (rank_t size = 3; size <= 33; size += 2) {
    problem const last{size - 1, size, 0};
    CHECK(steps::receivers<gathering>(last) == std::vector<rank_t>{size - 2});
    std::vector<primitive> const steps = steps::of<gathering>(last);
    CHECK(steps::others(steps.back().from, last) == std::vector<rank_t>{0, size - 2});
    CHECK(steps.back().target.count == size / 2);
    steps::for_each<gathering>(size, 0, [](problem p, primitive const& step) {
      for (rank_t const peer : steps::others(step.to, p)) {
        rank_t const apart = (peer - p.rank + p.size) % p.size;
        bool const round_the_guest = apart == 2 || apart == p.size - 2;
        CHECK((apart == 1 || apart == p.size - 1 || (round_the_guest && (peer == 0 || p.rank == 0))));
      }
    });
  }
}

TEST_CASE("neighbour_exchange: cost") {
  steps::check_costs<gathering>(
      {{1, {0, 0, 0}}, {2, {1, 1, 1}}, {4, {2, 2, 3}}, {6, {3, 3, 5}}, {16, {8, 8, 15}}});
  steps::check_costs<gathering>({{3, {3, 2, 3}}, {5, {3, 3, 7}}, {7, {4, 4, 10}}, {33, {17, 17, 49}}});
}
