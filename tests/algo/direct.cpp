// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/direct.hpp: one fan-in from everybody, in rank order.
#include "collx/algo/direct.hpp"

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using algo::direct_one_shot;
using algo::direct_two_shot;

static_assert(is_proven<direct_one_shot::all_reduce>);
static_assert(is_proven<direct_one_shot::reduce_scatter>);
static_assert(is_proven<direct_one_shot::all_gather>);
static_assert(is_proven<direct_one_shot::broadcast>);
static_assert(is_proven<direct_one_shot::reduce>);
static_assert(is_proven<direct_one_shot::gather>);
static_assert(is_proven<direct_one_shot::scatter>);
static_assert(is_proven<direct_one_shot::all_to_all>);
static_assert(is_proven<direct_one_shot::scan>);
static_assert(is_proven<direct_one_shot::exclusive_scan>);
static_assert(is_proven<direct_two_shot::all_reduce>);
static_assert(is_proven<direct_two_shot::broadcast>);
static_assert(is_proven<direct_two_shot::reduce>);

static_assert(keeps_rank_order<direct_one_shot::all_reduce>() &&
              keeps_rank_order<direct_two_shot::all_reduce>());
static_assert(keeps_rank_order<direct_one_shot::reduce_scatter>() &&
              keeps_rank_order<direct_one_shot::reduce>());

}  // namespace

TEST_CASE_TEMPLATE("direct: the one reduction of a rank takes from everybody, rank 0 first", Schedule,
                   direct_one_shot::all_reduce, direct_one_shot::reduce_scatter,
                   direct_two_shot::all_reduce) {
  for (rank_t size = 1; size <= 33; ++size) {
    std::int32_t reductions = 0;
    steps::for_each<Schedule>(size, 0, [&](problem p, primitive const& step) {
      if (!step.reduce) return;
      ++reductions;
      CHECK(step.complete);
      CHECK(step.from == everybody(p.size));
    });
    CHECK(reductions == size);
  }
}

TEST_CASE("direct: the number of steps does not grow with the number of ranks") {
  CHECK(direct_one_shot::all_reduce::step_count({0, 1000, 0}) == 2);
  CHECK(direct_two_shot::all_reduce::step_count({0, 1000, 0}) == 3);
  CHECK(direct_one_shot::broadcast::step_count({0, 1000, 7}) == 1);
}

TEST_CASE("direct: every rank begins with the rank behind it, so that not all send to rank 0 at once") {
  CHECK(steps::receivers<direct_one_shot::all_reduce>({2, 5, 0}) == std::vector<rank_t>{3, 4, 0, 1});
}

TEST_CASE("direct_one_shot all_reduce: what is sent is copied, because the result may lie on top of it") {
  CHECK(direct_one_shot::all_reduce::step({0, 4, 0}, 0).copy);
}

TEST_CASE("direct_two_shot all_reduce: rank r reduces chunk r and pushes it to everybody") {
  for (rank_t rank = 0; rank < 5; ++rank) {
    primitive const step = direct_two_shot::all_reduce::step({rank, 5, 0}, 1);
    CHECK(step.operand.first == rank);
    CHECK(step.target.first == rank);
    CHECK(step.push);
    CHECK(steps::others(step.to, {rank, 5, 0}).size() == 4);
  }
}

TEST_CASE("direct_two_shot reduce: everybody reduces a chunk, and pushes it to the root, which keeps it") {
  for (rank_t rank = 0; rank < 5; ++rank) {
    primitive const step = direct_two_shot::reduce::step({rank, 5, 3}, 1);
    CHECK(step.target.first == rank);
    CHECK(step.store == (rank == 3));
    CHECK(step.push == (rank != 3));
    CHECK(step.to == (rank == 3 ? nobody() : only(3)));
  }
  steps::check_costs<direct_two_shot::reduce>({{1, {0, 0, 0}}, {2, {2, 2, 2}}, {5, {2, 5, 5}}});
}

TEST_CASE("direct_one_shot: only the root sends in broadcast, and all send to the root in reduce") {
  for (rank_t root = 0; root < 5; ++root)
    for (rank_t rank = 0; rank < 5; ++rank) {
      CHECK(steps::receivers<direct_one_shot::broadcast>({rank, 5, root}).size() == (rank == root ? 4 : 0));
      std::vector<rank_t> const to_root(rank == root ? 0 : 1, root);
      CHECK(steps::receivers<direct_one_shot::reduce>({rank, 5, root}) == to_root);
    }
}

TEST_CASE("direct: cost") {
  steps::check_costs<direct_one_shot::all_reduce>({{1, {0, 0, 0}}, {2, {1, 1, 1}}, {8, {1, 7, 7}}});
  steps::check_costs<direct_one_shot::reduce_scatter>({{1, {0, 0, 0}}, {8, {1, 7, 7}}});
  steps::check_costs<direct_one_shot::all_gather>({{1, {0, 0, 0}}, {8, {1, 7, 7}}});
  steps::check_costs<direct_one_shot::broadcast>({{1, {0, 0, 0}}, {8, {1, 7, 7}}});
  steps::check_costs<direct_one_shot::reduce>({{1, {0, 0, 0}}, {8, {1, 1, 1}}});
  steps::check_costs<direct_two_shot::all_reduce>({{1, {0, 0, 0}}, {2, {2, 2, 2}}, {8, {2, 14, 14}}});
  steps::check_costs<direct_two_shot::broadcast>({{1, {0, 0, 0}}, {8, {2, 14, 14}}});
}
