// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/recursive_halving_doubling.hpp: halves, order, and no copies.
#include "collx/algo/recursive_halving_doubling.hpp"

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using halving = algo::recursive_halving_doubling;

static_assert(is_proven<halving::all_reduce>);
static_assert(is_proven<halving::reduce_scatter>);
static_assert(is_proven<halving::all_gather>);
static_assert(is_proven<halving::broadcast>);
static_assert(is_proven<halving::reduce>);
static_assert(keeps_rank_order<halving::reduce>());
static_assert(keeps_rank_order<halving::all_reduce>() && !keeps_rank_order<halving::reduce_scatter>());

// The runs of chunks a rank sends, as (first, count).
template <class Schedule>
std::vector<std::pair<std::int32_t, std::int32_t>> sent_runs(problem p) {
  std::vector<std::pair<std::int32_t, std::int32_t>> runs;
  for (primitive const& step : steps::of<Schedule>(p))
    if (!step.to.empty()) runs.emplace_back(step.operand.first, step.operand.count);
  return runs;
}

using runs = std::vector<std::pair<std::int32_t, std::int32_t>>;

}  // namespace

TEST_CASE("recursive_halving_doubling all_reduce: partners from near to far, and back") {
  CHECK(steps::receivers<halving::all_reduce>({5, 8, 0}) == std::vector<rank_t>{4, 7, 1, 1, 7, 4});
}

TEST_CASE("recursive_halving_doubling all_reduce: gives away halves, takes them back in reverse") {
  // Rank 5 = 101b keeps the upper half, then the lower quarter of it, then the upper eighth of that.
  CHECK(sent_runs<halving::all_reduce>({5, 8, 0}) == runs{{0, 4}, {6, 2}, {4, 1}, {5, 1}, {4, 2}, {4, 4}});
}

TEST_CASE("recursive_halving_doubling all_reduce: no step needs a copy, one pushes") {
  for (rank_t size = 1; size <= 33; ++size) {
    std::int32_t pushes = 0;
    steps::for_each<halving::all_reduce>(size, 0, [&](problem, primitive const& step) {
      CHECK(!step.copy);
      CHECK((!step.push || step.complete));
      pushes += step.push;
    });
    CHECK(pushes == (size == 1 ? 0 : algo::detail::power_of_two_core(size).size()));
  }
}

TEST_CASE("recursive_halving_doubling all_reduce: the lower rank's operand stands first") {
  for (rank_t size = 2; size <= 33; ++size)
    steps::for_each<halving::all_reduce>(size, 0, [](problem p, primitive const& step) {
      if (step.reduce) CHECK(step.from.member(0, p.size) < step.from.member(1, p.size));
    });
}

TEST_CASE("recursive_halving_doubling reduce_scatter: partners from far to near, ending with the own chunk") {
  CHECK(steps::receivers<halving::reduce_scatter>({5, 8, 0}) == std::vector<rank_t>{1, 7, 4});
  CHECK(steps::of<halving::reduce_scatter>({5, 8, 0}).back().target == region{place::output, 5, 1});
}

TEST_CASE("recursive_halving_doubling reduce_scatter: half a vector of scratch, a whole one with guests") {
  CHECK(scratch_chunks<halving::reduce_scatter>(1) == 0);
  CHECK(scratch_chunks<halving::reduce_scatter>(2) == 0);
  CHECK(scratch_chunks<halving::reduce_scatter>(8) == 4);
  CHECK(scratch_chunks<halving::reduce_scatter>(9) == 9);
  CHECK(scratch_chunks<halving::all_reduce>(9) == 0);
}

TEST_CASE("recursive_halving_doubling broadcast: the root stands for nobody else, whoever it is") {
  for (rank_t size = 1; size <= 33; ++size)
    for (rank_t root = 0; root < size; ++root) {
      algo::detail::core_around_root const core(size, root);
      CHECK(!core.is_outside(root));
      CHECK(!core.has_guest(root));
      rank_t inside = 0;
      for (rank_t rank = 0; rank < size; ++rank) {
        if (core.is_outside(rank)) CHECK(core.has_guest(core.mate(rank)));
        else CHECK(core.index_of(rank) == inside++);
        if (!core.is_outside(rank)) CHECK(core.rank_of(core.index_of(rank)) == rank);
      }
      CHECK(inside == core.size());
    }
}

TEST_CASE("recursive_halving_doubling broadcast: the root receives nothing, whoever it is") {
  for (rank_t root = 0; root < 8; ++root) {
    CHECK(steps::receivers<halving::broadcast>({root, 8, root}) ==
          std::vector<rank_t>{root ^ 4, root ^ 2, root ^ 1, root ^ 1, root ^ 2, root ^ 4});
    for (primitive const& step : steps::of<halving::broadcast>({root, 8, root})) CHECK(step.from.empty());
  }
}

TEST_CASE("recursive_halving_doubling broadcast: nobody is sent a chunk twice") {
  for (rank_t root = 0; root < 16; ++root) {
    std::vector<std::int32_t> received(16, 0);
    steps::for_each<halving::broadcast>(16, root, [&](problem p, primitive const& step) {
      if (!step.from.empty()) received[static_cast<std::size_t>(p.rank)] += step.target.count;
    });
    for (rank_t rank = 0; rank < 16; ++rank)
      CHECK(received[static_cast<std::size_t>(rank)] == (rank == root ? 0 : 16));
  }
}

TEST_CASE("recursive_halving_doubling broadcast: a guest is sent everything once, in one message") {
  for (rank_t root = 0; root < 11; ++root)
    steps::for_each<halving::broadcast>(11, root, [&](problem p, primitive const& step) {
      if (!algo::detail::core_around_root(11, root).is_outside(p.rank)) return;
      CHECK(steps::of<halving::broadcast>(p).size() == 1);
      CHECK(step.target.count == 8);
    });
}

TEST_CASE("recursive_halving_doubling reduce: halves from near to far, then gathers at the root") {
  CHECK(steps::receivers<halving::reduce>({5, 8, 0}) == std::vector<rank_t>{4, 7, 1, 1});
  CHECK(steps::receivers<halving::reduce>({5, 8, 5}) == std::vector<rank_t>{4, 7, 1});
  // Number 1 hands half of the vector on: the last run that it gave away comes back to it first.
  CHECK(sent_runs<halving::reduce>({1, 8, 0}) == runs{{0, 4}, {6, 2}, {5, 1}, {4, 4}});
}

TEST_CASE("recursive_halving_doubling reduce: the root takes its pair's part, and only it has an output") {
  for (rank_t size = 1; size <= 33; ++size)
    for (rank_t root = 0; root < size; ++root)
      steps::for_each<halving::reduce>(size, root, [&](problem p, primitive const& step) {
        if (step.store) CHECK((step.target.where == place::output) == (p.rank == root));
        if (p.rank == root) CHECK(!step.from.empty() + !step.to.empty() + (p.size == 1) > 0);
        CHECK(!step.copy);
      });
  algo::detail::core_led_by_root const core(11, 3);
  CHECK(core.is_outside(2));
  CHECK(core.has_guest(3));
  CHECK(core.is_outside(1));
  CHECK(core.rank_of(1) == 3);
}

TEST_CASE("recursive_halving_doubling: cost") {
  // Of 4 chunks for 4 to 7 ranks, of 8 chunks for 8.
  steps::check_costs<halving::all_reduce>(
      {{1, {0, 0, 0}}, {2, {2, 2, 2}}, {3, {4, 3, 4}}, {4, {4, 4, 6}}, {7, {6, 5, 10}}, {8, {6, 6, 14}}});
  steps::check_costs<halving::reduce_scatter>(
      {{1, {0, 0, 0}}, {2, {1, 1, 1}}, {3, {2, 2, 3}}, {7, {4, 3, 7}}, {8, {3, 3, 7}}});
  steps::check_costs<halving::broadcast>(
      {{1, {0, 0, 0}}, {2, {1, 2, 2}}, {3, {2, 2, 2}}, {4, {3, 4, 6}}, {7, {4, 4, 6}}, {8, {5, 6, 14}}});
  steps::check_costs<halving::reduce>(
      {{1, {0, 0, 0}}, {2, {2, 2, 2}}, {3, {3, 2, 2}}, {4, {4, 3, 5}}, {8, {6, 4, 11}}, {15, {7, 4, 11}}});
  CHECK(documented_cost<halving::reduce>(11, 9).rounds == 6);     // a root without a guest
  CHECK(documented_cost<halving::broadcast>(11, 9).rounds == 5);  // number 1 has none
}
