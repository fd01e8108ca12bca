// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/binomial_tree.hpp: the tree, and that its brackets do not
// depend on the root.
#include "collx/algo/binomial_tree.hpp"

#include <algorithm>
#include <string>

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using algo::binomial_tree;

static_assert(is_proven<binomial_tree::broadcast>);
static_assert(is_proven<binomial_tree::reduce>);
static_assert(is_proven<binomial_tree::all_reduce>);
static_assert(is_proven<binomial_tree::gather> && is_proven<binomial_tree::scatter>);
static_assert(keeps_rank_order<binomial_tree::reduce>() && keeps_rank_order<binomial_tree::all_reduce>());

// The expression in brackets that `rank` computes in a reduce to `root`.
std::string expression(rank_t rank, rank_t size, rank_t root) {
  std::string result = std::to_string(rank);
  for (primitive const& step : steps::of<binomial_tree::reduce>({rank, size, root}))
    for (rank_t const child : steps::others(step.from, {rank, size, root})) {
      std::string const more = expression(child, size, root);
      result = step.from.first == rank ? "(" + result + " " + more + ")" : "(" + more + " " + result + ")";
    }
  return result;
}

}  // namespace

TEST_CASE("binomial_tree broadcast: the largest subtree is served first") {
  CHECK(steps::receivers<binomial_tree::broadcast>({0, 8, 0}) == std::vector<rank_t>{4, 2, 1});
  CHECK(steps::receivers<binomial_tree::broadcast>({4, 8, 0}) == std::vector<rank_t>{6, 5});
  CHECK(steps::receivers<binomial_tree::broadcast>({6, 8, 0}) == std::vector<rank_t>{7});
  CHECK(steps::receivers<binomial_tree::broadcast>({7, 8, 0}).empty());
}

TEST_CASE("binomial_tree broadcast: another root leads the blocks it is in, the other blocks stay") {
  // Root 5 serves the block 0..3 through 0, the block 6..7 through 6, and 4.
  CHECK(steps::receivers<binomial_tree::broadcast>({5, 8, 5}) == std::vector<rank_t>{0, 6, 4});
  CHECK(steps::receivers<binomial_tree::broadcast>({0, 8, 5}) == std::vector<rank_t>{2, 1});
  CHECK(steps::receivers<binomial_tree::broadcast>({6, 8, 5}) == std::vector<rank_t>{7});
}

TEST_CASE("binomial_tree: blocks that are cut off by the size have no leader to talk to") {
  CHECK(steps::receivers<binomial_tree::broadcast>({0, 5, 0}) == std::vector<rank_t>{4, 2, 1});
  CHECK(steps::receivers<binomial_tree::broadcast>({4, 5, 4}) == std::vector<rank_t>{0});
  CHECK(steps::receivers<binomial_tree::broadcast>({4, 6, 0}) == std::vector<rank_t>{5});
}

TEST_CASE("binomial_tree reduce: the same brackets for every root") {
  CHECK(expression(0, 4, 0) == "((0 1) (2 3))");
  CHECK(expression(3, 6, 3) == "(((0 1) (2 3)) (4 5))");
  for (rank_t size = 1; size <= 33; ++size)
    for (rank_t root = 1; root < size; ++root) CHECK(expression(root, size, root) == expression(0, size, 0));
}

TEST_CASE("binomial_tree reduce: everybody but the root sends once, and stores in scratch only") {
  for (rank_t size = 1; size <= 17; ++size)
    for (rank_t root = 0; root < size; ++root)
      for (rank_t rank = 0; rank < size; ++rank) {
        CHECK(steps::receivers<binomial_tree::reduce>({rank, size, root}).size() == (rank == root ? 0 : 1));
        for (primitive const& step : steps::of<binomial_tree::reduce>({rank, size, root}))
          if (step.store) CHECK(step.target.where == (rank == root ? place::output : place::scratch));
      }
}

TEST_CASE("binomial_tree all_reduce: goes through rank 0 whatever the root says") {
  for (rank_t size = 1; size <= 9; ++size)
    for (rank_t rank = 0; rank < size; ++rank)
      CHECK(steps::of<binomial_tree::all_reduce>({rank, size, size - 1}) ==
            steps::of<binomial_tree::all_reduce>({rank, size, 0}));
}

TEST_CASE("binomial_tree: cost, of the worst root where none is named") {
  steps::check_costs<binomial_tree::broadcast>(
      {{1, {0, 0, 0}}, {2, {1, 1, 1}}, {3, {2, 2, 2}}, {5, {3, 3, 3}}, {8, {3, 3, 3}}});
  steps::check_costs<binomial_tree::reduce>({{1, {0, 0, 0}}, {2, {1, 1, 1}}, {5, {3, 1, 1}}, {8, {3, 1, 1}}});
  steps::check_costs<binomial_tree::all_reduce>(
      {{1, {0, 0, 0}}, {2, {2, 1, 1}}, {3, {2, 2, 2}}, {5, {4, 3, 3}}, {8, {6, 3, 3}}});
  CHECK(documented_cost<binomial_tree::broadcast>(5, 0) == cost{2, 3, 3});
  CHECK(documented_cost<binomial_tree::broadcast>(5, 4) == cost{3, 2, 2});
  CHECK(documented_cost<binomial_tree::reduce>(5, 0) == cost{2, 1, 1});
  CHECK(documented_cost<binomial_tree::reduce>(5, 4) == cost{3, 1, 1});
}

TEST_CASE_TEMPLATE("binomial_tree: no root costs more than documented, and one costs as much", Schedule,
                   binomial_tree::broadcast, binomial_tree::reduce) {
  for (rank_t size = 1; size <= 65; ++size) {
    cost worst;
    for (rank_t root = 0; root < size; ++root) {
      cost const one = documented_cost<Schedule>(size, root);
      worst.rounds = std::max(worst.rounds, one.rounds);
      worst.messages = std::max(worst.messages, one.messages);
      worst.chunks = std::max(worst.chunks, one.chunks);
    }
    CHECK(worst == collx::documented_cost<Schedule>(size));
  }
}
