// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/bruck.hpp: distances by powers of K, and blocks by digits.
#include "collx/algo/bruck.hpp"

#include <string>

#include "algo/proven.hpp"
#include "algo/steps.hpp"
#include "collx/schedule/verify.hpp"

namespace {

using namespace collx;
using algo::bruck;

static_assert(is_proven<bruck<2>::all_gather>);
static_assert(is_proven<bruck<2>::all_to_all>);
static_assert(is_proven<bruck<3>::all_gather>);
static_assert(is_proven<bruck<3>::all_to_all>);
static_assert(is_proven<bruck<4>::all_gather>);
static_assert(is_proven<bruck<4>::all_to_all>);

std::vector<std::int32_t> slots(region const& r) {
  std::vector<std::int32_t> all;
  for (std::int32_t i = 0; i < r.count; ++i) all.push_back(r.chunk(r.first, i, 1 << 20));
  return all;
}

}  // namespace

TEST_CASE("bruck: K is part of the name") {
  CHECK(std::string(bruck<2>::name) == "bruck_2");
  CHECK(std::string(bruck<16>::name) == "bruck_16");
}

TEST_CASE("bruck all_gather: back by powers of K, the last round as far as there are ranks") {
  CHECK(steps::receivers<bruck<2>::all_gather>({0, 8, 0}) == std::vector<rank_t>{7, 6, 4});
  CHECK(steps::receivers<bruck<2>::all_gather>({5, 6, 0}) == std::vector<rank_t>{4, 3, 1});
  CHECK(steps::receivers<bruck<4>::all_gather>({0, 16, 0}) == std::vector<rank_t>{15, 14, 13, 12, 8, 4});
  CHECK(steps::receivers<bruck<4>::all_gather>({0, 10, 0}) == std::vector<rank_t>{9, 8, 7, 6, 2});
}

TEST_CASE("bruck all_gather: every block is received where it belongs") {
  for (rank_t size = 1; size <= 33; ++size)
    steps::for_each<bruck<2>::all_gather>(size, 0, [](problem, primitive const& step) {
      CHECK(!step.copy);
      if (step.store) CHECK(step.target.where == place::output);
    });
}

TEST_CASE("bruck all_to_all: those blocks travel whose distance has the digit of the round") {
  std::vector<std::vector<std::int32_t>> sent;
  for (primitive const& step : steps::of<bruck<3>::all_to_all>({2, 8, 0}))
    if (!step.to.empty()) sent.push_back(slots(step.operand));
  CHECK(sent == std::vector<std::vector<std::int32_t>>{{1, 4, 7}, {2, 5}, {3, 4, 5}, {6, 7}});
  CHECK(steps::receivers<bruck<3>::all_to_all>({2, 8, 0}) == std::vector<rank_t>{3, 4, 5, 0});
}

TEST_CASE_TEMPLATE("bruck: proved for other K too", Ports, bruck<3>, bruck<5>, bruck<8>) {
  for (rank_t const size : {1, 2, 5, 7, 9, 10, 25, 26, 27, 28, 33, 48, 63, 64, 65}) {
    CAPTURE(size);
    CHECK(verify<typename Ports::all_gather>(size).ok());
    CHECK(verify<typename Ports::all_to_all>(size).ok());
  }
}

TEST_CASE("bruck: cost") {
  steps::check_costs<bruck<2>::all_gather>({{1, {0, 0, 0}}, {2, {1, 1, 1}}, {6, {3, 3, 5}}, {8, {3, 3, 7}}});
  // Ten ranks: three messages of one block, then one of four and one of the two that are left.
  steps::check_costs<bruck<4>::all_gather>(
      {{3, {1, 2, 2}}, {4, {1, 3, 3}}, {10, {2, 5, 9}}, {16, {2, 6, 15}}});
  steps::check_costs<bruck<2>::all_to_all>({{1, {0, 0, 0}}, {2, {1, 1, 1}}, {6, {3, 3, 7}}, {8, {3, 3, 12}}});
  steps::check_costs<bruck<4>::all_to_all>({{4, {1, 3, 3}}, {5, {2, 4, 4}}, {16, {2, 6, 24}}});
}
