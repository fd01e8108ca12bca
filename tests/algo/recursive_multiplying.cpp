// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/recursive_multiplying.hpp: groups of K, rank order, guests.
#include "collx/algo/recursive_multiplying.hpp"

#include <string>

#include "algo/proven.hpp"
#include "algo/steps.hpp"
#include "collx/schedule/verify.hpp"

namespace {

using namespace collx;
template <std::int32_t K>
using by = algo::recursive_multiplying<K>::all_reduce;

static_assert(is_proven<by<2>>);
static_assert(is_proven<by<3>>);
static_assert(is_proven<by<4>>);
static_assert(keeps_rank_order<by<4>>());

}  // namespace

TEST_CASE("recursive_multiplying: groups of K ranks at distance 1, K, K^2, ..., of fewer at the top") {
  CHECK(std::string(algo::recursive_multiplying<4>::name) == "recursive_multiplying_4");
  CHECK(steps::receivers<by<4>>({5, 16, 0}) == std::vector<rank_t>{6, 7, 4, 9, 13, 1});
  CHECK(steps::receivers<by<4>>({5, 12, 0}) == std::vector<rank_t>{6, 7, 4, 9, 1});
  CHECK(steps::receivers<by<2>>({5, 8, 0}) == std::vector<rank_t>{4, 7, 1});
  CHECK(steps::receivers<by<4>>({1, 3, 0}) == std::vector<rank_t>{2, 0});
}

TEST_CASE("recursive_multiplying: guests belong to the last rank of a block") {
  // Eleven ranks: two blocks of five and one left over. 4 is a guest of 3; 9 and 10 are of 8.
  CHECK(steps::receivers<by<4>>({3, 11, 0}) == std::vector<rank_t>{0, 1, 2, 8, 4});
  CHECK(steps::receivers<by<4>>({8, 11, 0}) == std::vector<rank_t>{5, 6, 7, 3, 9, 10});
  for (rank_t const guest : {4, 9, 10}) CHECK(by<4>::step_count({guest, 11, 0}) == 2);
  CHECK(steps::receivers<by<4>>({10, 11, 0}) == std::vector<rank_t>{8});
}

TEST_CASE("recursive_multiplying: operands stand in rank order") {
  for (rank_t size = 2; size <= 33; ++size)
    steps::for_each<by<4>>(size, 0, [](problem p, primitive const& step) {
      for (std::int32_t k = 1; k < step.from.count; ++k)
        CHECK(step.from.member(k - 1, p.size) < step.from.member(k, p.size));
    });
}

TEST_CASE_TEMPLATE("recursive_multiplying: proved for other K too", Schedule, by<2>, by<3>, by<5>, by<8>) {
  for (rank_t size = 1; size <= 33; ++size) CHECK(verify<Schedule>(size).ok());
  for (rank_t const size : {48, 63, 64, 65, 81, 82, 125, 127, 128}) CHECK(verify<Schedule>(size).ok());
}

TEST_CASE("recursive_multiplying: cost") {
  steps::check_costs<by<2>>(
      {{1, {0, 0, 0}}, {2, {1, 1, 1}}, {3, {2, 2, 2}}, {8, {3, 3, 3}}, {15, {4, 6, 6}}});
  steps::check_costs<by<4>>({{1, {0, 0, 0}},
                             {2, {1, 1, 1}},
                             {4, {1, 3, 3}},
                             {5, {2, 4, 4}},
                             {8, {2, 4, 4}},
                             {11, {3, 6, 6}},
                             {16, {2, 6, 6}},
                             {64, {3, 9, 9}}});
}
