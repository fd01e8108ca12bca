// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/knomial_tree.hpp and knomial_blocks.hpp: who leads whom, one fan-in
// and one fan-out per level, and that the brackets of a reduction do not depend on the root.
#include "collx/algo/knomial_tree.hpp"

#include <algorithm>
#include <string>

#include "algo/proven.hpp"
#include "algo/steps.hpp"
#include "collx/schedule/verify.hpp"

namespace {

using namespace collx;
using tree = algo::knomial_tree<4>;
using ternary = algo::knomial_tree<3>;

static_assert(is_proven<tree::broadcast> && is_proven<tree::reduce> && is_proven<tree::all_reduce>);
static_assert(is_proven<tree::gather> && is_proven<tree::scatter>);
static_assert(is_proven<ternary::broadcast> && is_proven<ternary::reduce>);
static_assert(keeps_rank_order<tree::reduce>() && keeps_rank_order<tree::all_reduce>());

// The expression in brackets that `rank` sends, or at the end has.
template <class Tree>
std::string expression(rank_t rank, rank_t size, rank_t root, bool at_end) {
  std::string result = std::to_string(rank);
  for (primitive const& step : steps::of<typename Tree::reduce>({rank, size, root})) {
    if (step.reduce) {
      std::string operands;
      for (std::int32_t k = 0; k < step.from.count; ++k) {
        rank_t const peer = step.from.member(k, size);
        operands += (k == 0 ? "" : " ") + (peer == rank ? result : expression<Tree>(peer, size, root, false));
      }
      result = "(" + operands + ")";
    }
    if (!step.to.empty() && !at_end) return result;
  }
  return result;
}

// The chunks that `rank` sends to each of its receivers, as "receiver:first+count".
template <class Schedule>
std::vector<std::string> runs(problem p) {
  std::vector<std::string> all;
  for (primitive const& step : steps::of<Schedule>(p))
    for (rank_t const peer : steps::others(step.to, p))
      all.push_back(std::to_string(peer) + ":" + std::to_string(step.operand.first) + "+" +
                    std::to_string(step.operand.count));
  return all;
}

}  // namespace

TEST_CASE("knomial_tree: the name tells K") {
  CHECK(std::string(tree::name) == "knomial_tree_4");
  CHECK(std::string(algo::knomial_tree<16>::name) == "knomial_tree_16");
}

TEST_CASE("knomial_tree broadcast: one fan-out per level, the largest blocks first") {
  CHECK(steps::receivers<tree::broadcast>({0, 16, 0}) == std::vector<rank_t>{4, 8, 12, 1, 2, 3});
  CHECK(tree::broadcast::step_count({0, 16, 0}) == 2);
  CHECK(steps::receivers<tree::broadcast>({4, 16, 0}) == std::vector<rank_t>{5, 6, 7});
  CHECK(steps::receivers<tree::broadcast>({5, 16, 0}).empty());
}

TEST_CASE("knomial_tree broadcast: another root leads the blocks it is in, the other blocks stay") {
  // Root 6 leads 4..7 and everybody; the axis of a fan-out begins behind the root.
  CHECK(steps::receivers<tree::broadcast>({6, 16, 6}) == std::vector<rank_t>{8, 12, 0, 7, 4, 5});
  CHECK(steps::receivers<tree::broadcast>({4, 16, 6}).empty());
  CHECK(steps::receivers<tree::broadcast>({0, 16, 6}) == std::vector<rank_t>{1, 2, 3});
}

TEST_CASE("knomial_tree: blocks that are cut off by the size") {
  CHECK(steps::receivers<tree::broadcast>({0, 6, 0}) == std::vector<rank_t>{4, 1, 2, 3});
  CHECK(steps::receivers<tree::broadcast>({4, 6, 0}) == std::vector<rank_t>{5});
  CHECK(steps::receivers<tree::broadcast>({17, 18, 17}) == std::vector<rank_t>{0, 16});
}

TEST_CASE("knomial_tree reduce: one fan-in per level, and the same brackets for every root") {
  CHECK(expression<tree>(0, 6, 0, true) == "((0 1 2 3) (4 5))");
  CHECK(expression<tree>(5, 6, 5, true) == "((0 1 2 3) (4 5))");
  primitive const last = tree::reduce::step({6, 16, 6}, 1);
  CHECK(last.from == peer_set{0, 4, 4});
  CHECK(last.complete);
  for (rank_t size = 1; size <= 33; ++size)
    for (rank_t root = 1; root < size; ++root) {
      CHECK(expression<tree>(root, size, root, true) == expression<tree>(0, size, 0, true));
      CHECK(expression<ternary>(root, size, root, true) == expression<ternary>(0, size, 0, true));
    }
}

TEST_CASE("knomial_tree gather and scatter: blocks are runs, for every root") {
  CHECK(runs<tree::gather>({4, 16, 0}) == std::vector<std::string>{"0:0+4"});
  CHECK(runs<tree::gather>({5, 16, 0}) == std::vector<std::string>{"4:5+1"});
  CHECK(runs<tree::scatter>({6, 16, 6}) ==
        std::vector<std::string>{"0:0+4", "8:8+4", "12:12+4", "4:4+1", "5:5+1", "7:7+1"});
  // From scratch, where its own chunk is the first.
  CHECK(runs<tree::scatter>({8, 16, 6}) == std::vector<std::string>{"9:1+1", "10:2+1", "11:3+1"});
  CHECK(runs<tree::gather>({16, 18, 0}) == std::vector<std::string>{"0:0+2"});
}

TEST_CASE("knomial_tree all_reduce: goes through rank 0 whatever the root says") {
  for (rank_t size = 1; size <= 9; ++size)
    for (rank_t rank = 0; rank < size; ++rank)
      CHECK(steps::of<tree::all_reduce>({rank, size, size - 1}) ==
            steps::of<tree::all_reduce>({rank, size, 0}));
}

TEST_CASE("knomial_tree: cost, of the worst root where none is named") {
  steps::check_costs<tree::broadcast>(
      {{1, {0, 0, 0}}, {2, {1, 1, 1}}, {4, {1, 3, 3}}, {5, {2, 4, 4}}, {16, {2, 6, 6}}, {17, {3, 7, 7}}});
  steps::check_costs<tree::reduce>({{1, {0, 0, 0}}, {2, {1, 1, 1}}, {5, {2, 1, 1}}, {64, {3, 1, 1}}});
  steps::check_costs<tree::all_reduce>({{1, {0, 0, 0}}, {4, {2, 3, 3}}, {5, {2, 4, 4}}, {8, {4, 4, 4}}});
  steps::check_costs<tree::gather>({{1, {0, 0, 0}}, {4, {1, 1, 1}}, {5, {2, 1, 4}}, {64, {3, 1, 16}}});
  steps::check_costs<tree::scatter>({{1, {0, 0, 0}}, {4, {1, 3, 3}}, {5, {2, 4, 4}}, {64, {3, 9, 63}}});
  CHECK(documented_cost<tree::broadcast>(5, 0) == cost{1, 4, 4});
  CHECK(documented_cost<tree::broadcast>(5, 4) == cost{2, 3, 3});
  CHECK(documented_cost<tree::reduce>(5, 1) == cost{2, 1, 1});
  CHECK(documented_cost<tree::gather>(6, 0) == cost{2, 1, 2});
}

TEST_CASE_TEMPLATE("knomial_tree: proved for other K too, every root", Tree, algo::knomial_tree<2>,
                   algo::knomial_tree<3>, algo::knomial_tree<5>, algo::knomial_tree<8>) {
  for (rank_t size = 1; size <= 33; ++size)
    for (rank_t root = 0; root < size; ++root) {
      CHECK(verify<typename Tree::broadcast>(size, root).ok());
      CHECK(verify<typename Tree::reduce>(size, root).ok());
      CHECK(verify<typename Tree::gather>(size, root).ok());
      CHECK(verify<typename Tree::scatter>(size, root).ok());
    }
  for (rank_t size = 1; size <= 33; ++size) CHECK(verify<typename Tree::all_reduce>(size).ok());
}
