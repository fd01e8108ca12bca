// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/double_binary_tree.hpp: the two trees, that nobody works in both,
// and that the brackets of a reduction do not depend on the root.
#include "collx/algo/double_binary_tree.hpp"

#include <algorithm>
#include <string>

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using algo::double_binary_tree;

static_assert(is_proven<double_binary_tree::all_reduce>);
static_assert(is_proven<double_binary_tree::reduce>);
static_assert(is_proven<double_binary_tree::broadcast>);
static_assert(keeps_rank_order<double_binary_tree::all_reduce>() &&
              keeps_rank_order<double_binary_tree::reduce>());

// Whom a rank serves with one half of the vector.
std::vector<rank_t> children(rank_t rank, rank_t size, rank_t root, std::int32_t half) {
  problem const p{rank, size, root};
  for (primitive const& step : steps::of<double_binary_tree::broadcast>(p))
    if (step.target.first == half) return steps::others(step.to, p);
  return {};
}

// The expression in brackets for one half that `rank` sends up, or at the end has.
std::string expression(rank_t rank, rank_t size, rank_t root, std::int32_t half) {
  std::string result = std::to_string(rank);
  for (primitive const& step : steps::of<double_binary_tree::reduce>({rank, size, root})) {
    if (!step.reduce || step.target.first != half) continue;
    std::string operands;
    for (std::int32_t k = 0; k < step.from.count; ++k) {
      rank_t const peer = step.from.member(k, size);
      operands += (k == 0 ? "" : " ") + (peer == rank ? result : expression(peer, size, root, half));
    }
    result = "(" + operands + ")";
  }
  return result;
}

// The rank that completes a half.
rank_t completes(rank_t size, rank_t root, std::int32_t half) {
  rank_t found = no_rank;
  steps::for_each<double_binary_tree::reduce>(size, root, [&](problem p, primitive const& step) {
    if (step.complete && step.target.first == half) found = p.rank;
  });
  return found;
}

}  // namespace

TEST_CASE("double_binary_tree broadcast: two trees of the ranks behind the root") {
  CHECK(children(0, 8, 0, 0) == std::vector<rank_t>{4});
  CHECK(children(4, 8, 0, 0) == std::vector<rank_t>{2, 6});
  CHECK(children(2, 8, 0, 0) == std::vector<rank_t>{1, 3});
  CHECK(children(0, 8, 0, 1) == std::vector<rank_t>{7});
  CHECK(children(7, 8, 0, 1) == std::vector<rank_t>{3});
  CHECK(children(3, 8, 0, 1) == std::vector<rank_t>{1, 5});
  CHECK(children(1, 8, 0, 1) == std::vector<rank_t>{2});
}

TEST_CASE("double_binary_tree broadcast: another root turns the trees round") {
  for (rank_t size = 2; size <= 17; ++size)
    for (rank_t root = 0; root < size; ++root)
      for (rank_t rank = 0; rank < size; ++rank)
        for (std::int32_t half : {0, 1}) {
          std::vector<rank_t> turned = children(rank, size, 0, half);
          for (rank_t& child : turned) child = (child + root) % size;
          CHECK(children((rank + root) % size, size, root, half) == turned);
        }
}

TEST_CASE("double_binary_tree: who has children in one tree is a leaf of the other, whatever the size") {
  for (rank_t size = 2; size <= 65; ++size) {
    for (rank_t rank = 1; rank < size; ++rank)
      CHECK((children(rank, size, 0, 0).empty() || children(rank, size, 0, 1).empty()));
    for (rank_t rank = 0; rank < size; ++rank) {
      std::vector<std::int32_t> joined;
      for (primitive const& step : steps::of<double_binary_tree::all_reduce>({rank, size, 0}))
        if (step.reduce) joined.push_back(step.target.first);
      CHECK(!joined.empty());
      for (std::int32_t const half : joined) CHECK(half == rank % 2);
    }
  }
}

TEST_CASE("double_binary_tree reduce: the same brackets for every root") {
  CHECK(expression(0, 4, 0, 0) == "(0 (1 2 3))");
  CHECK(expression(3, 4, 0, 1) == "((0 1 2) 3)");
  // The right child of 4 is 5, nearer than the left one: two steps.
  CHECK(expression(0, 6, 0, 0) == "(0 (((1 2 3) 4) 5))");
  for (rank_t size = 2; size <= 33; ++size)
    for (rank_t root = 0; root < size; ++root)
      for (std::int32_t half : {0, 1}) {
        rank_t const at = completes(size, root, half);
        CHECK(at == completes(size, 0, half));
        CHECK(expression(at, size, root, half) == expression(at, size, 0, half));
      }
}

TEST_CASE("double_binary_tree reduce: tree roots send their half to the root, if they are not it") {
  CHECK(steps::receivers<double_binary_tree::reduce>({0, 8, 5}) == std::vector<rank_t>{1, 5});
  CHECK(steps::receivers<double_binary_tree::reduce>({7, 8, 5}) == std::vector<rank_t>{6, 5});
  CHECK(steps::receivers<double_binary_tree::reduce>({0, 8, 0}) == std::vector<rank_t>{1});
}

TEST_CASE("double_binary_tree: cost, of the worst root where none is named") {
  steps::check_costs<double_binary_tree::all_reduce>(
      {{1, {0, 0, 0}}, {2, {2, 2, 2}}, {3, {4, 3, 3}}, {4, {4, 4, 4}}, {9, {8, 4, 4}}, {16, {8, 4, 4}}});
  steps::check_costs<double_binary_tree::reduce>({{1, {0, 0, 0}}, {2, {2, 2, 2}}, {9, {5, 2, 2}}});
  steps::check_costs<double_binary_tree::broadcast>(
      {{1, {0, 0, 0}}, {2, {1, 2, 2}}, {3, {2, 2, 2}}, {9, {4, 2, 2}}, {16, {5, 2, 2}}});
  CHECK(documented_cost<double_binary_tree::reduce>(9, 0) == cost{4, 2, 2});
}
