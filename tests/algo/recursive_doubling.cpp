// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/recursive_doubling.hpp: partners, rank order, the fold, scans.
#include "collx/algo/recursive_doubling.hpp"

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using algo::recursive_doubling;

static_assert(is_proven<recursive_doubling::all_reduce>);
static_assert(is_proven<recursive_doubling::all_gather>);
static_assert(is_proven<recursive_doubling::scan>);
static_assert(is_proven<recursive_doubling::exclusive_scan>);
static_assert(keeps_rank_order<recursive_doubling::all_reduce>() &&
              keeps_rank_order<recursive_doubling::scan>());
static_assert(keeps_rank_order<recursive_doubling::exclusive_scan>());

}  // namespace

TEST_CASE_TEMPLATE("recursive_doubling: in a power of two, the partners of r are r^1, r^2, r^4, ...",
                   Schedule, recursive_doubling::all_reduce, recursive_doubling::all_gather) {
  CHECK(steps::receivers<Schedule>({5, 8, 0}) == std::vector<rank_t>{4, 7, 1});
  for (rank_t size = 2; size <= 64; size *= 2)
    for (rank_t rank = 0; rank < size; ++rank) {
      std::vector<rank_t> expected;
      for (rank_t distance = 1; distance < size; distance *= 2) expected.push_back(rank ^ distance);
      CHECK(steps::receivers<Schedule>({rank, size, 0}) == expected);
    }
}

TEST_CASE_TEMPLATE("recursive_doubling: a surplus rank talks to the rank below it only", Schedule,
                   recursive_doubling::all_reduce, recursive_doubling::all_gather) {
  // Six ranks: 1 and 3 are outside; 0 2 4 5 form the core.
  CHECK(steps::receivers<Schedule>({1, 6, 0}) == std::vector<rank_t>{0});
  CHECK(steps::receivers<Schedule>({3, 6, 0}) == std::vector<rank_t>{2});
  CHECK(steps::receivers<Schedule>({0, 6, 0}) == std::vector<rank_t>{2, 4, 1});
  CHECK(steps::receivers<Schedule>({2, 6, 0}) == std::vector<rank_t>{0, 5, 3});
  CHECK(steps::receivers<Schedule>({5, 6, 0}) == std::vector<rank_t>{4, 2});
}

TEST_CASE("recursive_doubling all_reduce: a step per level and one more, all but the last copied") {
  CHECK(recursive_doubling::all_reduce::step_count({0, 1, 0}) == 1);
  CHECK(recursive_doubling::all_reduce::step_count({0, 8, 0}) == 4);
  CHECK(recursive_doubling::all_reduce::step_count({0, 9, 0}) == 4);
  CHECK(recursive_doubling::all_reduce::step_count({1, 9, 0}) == 2);
  for (rank_t size = 2; size <= 33; ++size)
    steps::for_each<recursive_doubling::all_reduce>(size, 0, [](problem p, primitive const& step) {
      bool const enters_core =
          step.from.empty() && p.rank % 2 == 1 && step.to == only(p.rank - 1) && !step.copy;
      bool const leaves_core = step.complete;
      if (!step.to.empty()) CHECK((step.copy || enters_core || leaves_core));
    });
}

TEST_CASE("recursive_doubling all_reduce: the lower rank's operand stands first") {
  for (rank_t size = 2; size <= 33; ++size)
    steps::for_each<recursive_doubling::all_reduce>(size, 0, [](problem p, primitive const& step) {
      if (!step.reduce) return;
      REQUIRE(step.from.count == 2);
      CHECK(step.from.member(0, p.size) < step.from.member(1, p.size));
    });
}

TEST_CASE("recursive_doubling all_gather: runs double") {
  std::vector<std::int32_t> counts;
  for (primitive const& step : steps::of<recursive_doubling::all_gather>({3, 8, 0}))
    if (!step.to.empty()) counts.push_back(step.operand.count);
  CHECK(counts == std::vector<std::int32_t>{1, 2, 4});
}

TEST_CASE("recursive_doubling scan: to the ranks 1, 2, 4, ... further on, as far as there are any") {
  CHECK(steps::receivers<recursive_doubling::scan>({0, 8, 0}) == std::vector<rank_t>{1, 2, 4});
  CHECK(steps::receivers<recursive_doubling::scan>({3, 8, 0}) == std::vector<rank_t>{4, 5, 7});
  CHECK(steps::receivers<recursive_doubling::scan>({5, 8, 0}) == std::vector<rank_t>{6, 7});
  CHECK(steps::receivers<recursive_doubling::scan>({7, 8, 0}).empty());
}

TEST_CASE("recursive_doubling exclusive_scan: one to the right, then a scan without rank 0") {
  CHECK(steps::receivers<recursive_doubling::exclusive_scan>({0, 8, 0}) == std::vector<rank_t>{1});
  CHECK(steps::receivers<recursive_doubling::exclusive_scan>({1, 8, 0}) == std::vector<rank_t>{2, 2, 3, 5});
  CHECK(steps::receivers<recursive_doubling::exclusive_scan>({7, 8, 0}).empty());
  CHECK(recursive_doubling::exclusive_scan::step_count({0, 1, 0}) == 0);
}

TEST_CASE_TEMPLATE("recursive_doubling: no reduction of a scan is the last one of all", Schedule,
                   recursive_doubling::scan, recursive_doubling::exclusive_scan) {
  for (rank_t size = 1; size <= 17; ++size)
    steps::for_each<Schedule>(size, 0, [](problem, primitive const& step) { CHECK_FALSE(step.complete); });
}

TEST_CASE("recursive_doubling: cost") {
  steps::check_costs<recursive_doubling::all_reduce>({{1, {0, 0, 0}},
                                                      {2, {1, 1, 1}},
                                                      {3, {2, 2, 2}},
                                                      {4, {2, 2, 2}},
                                                      {6, {3, 3, 3}},
                                                      {7, {4, 3, 3}},
                                                      {8, {3, 3, 3}}});
  // Seven ranks: rank 0 stands for 1 too, so it sends runs of 2 and 4, and 7 to rank 1.
  steps::check_costs<recursive_doubling::all_gather>(
      {{1, {0, 0, 0}}, {2, {1, 1, 1}}, {3, {2, 2, 5}}, {7, {4, 3, 13}}, {8, {3, 3, 7}}});
  steps::check_costs<recursive_doubling::scan>(
      {{1, {0, 0, 0}}, {2, {1, 1, 1}}, {3, {1, 2, 2}}, {7, {2, 3, 3}}, {8, {3, 3, 3}}, {9, {3, 4, 4}}});
  steps::check_costs<recursive_doubling::exclusive_scan>(
      {{1, {0, 0, 0}}, {2, {1, 1, 1}}, {3, {2, 2, 2}}, {8, {3, 4, 4}}, {9, {4, 4, 4}}});
}
