// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/swing.hpp: how near partners are, and on which side.
#include "collx/algo/swing.hpp"

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using algo::swing;

static_assert(is_proven<swing::all_reduce>);
static_assert(is_proven<swing::reduce_scatter>);
static_assert(is_proven<swing::all_gather>);
static_assert(!keeps_rank_order<swing::all_reduce>());
static_assert(swing::all_gather::supports(6) && swing::reduce_scatter::supports(13));

// Hops on the ring to the partners of a rank's levels, to the right if positive.
std::vector<rank_t> hops(rank_t rank, rank_t size) {
  std::vector<rank_t> all;
  algo::detail::swing_core const core(size);
  for (std::int32_t level = 0; level < core.levels; ++level) {
    rank_t const right = (core.partner(rank, level) - rank + size) % size;
    all.push_back(right <= size / 2 ? right : right - size);
  }
  return all;
}

}  // namespace

TEST_CASE("swing: partners lie at distance 1, 1, 3, 5, 11, ... on both sides by turns") {
  CHECK(hops(0, 64) == std::vector<rank_t>{1, -1, 3, -5, 11, -21});
  CHECK(hops(7, 64) == std::vector<rank_t>{-1, 1, -3, 5, -11, 21});
  CHECK(steps::receivers<swing::reduce_scatter>({0, 8, 0}) == std::vector<rank_t>{1, 1, 7, 7, 3});
  CHECK(steps::receivers<swing::all_gather>({0, 8, 0}) == std::vector<rank_t>{3, 7, 7, 1, 1});
}

TEST_CASE("swing: partners are partners of each other, and their index differs from the level's bit on") {
  for (rank_t size = 2; size <= 1024; size *= 2) {
    algo::detail::swing_core const core(size);
    for (rank_t rank = 0; rank < size; ++rank)
      for (std::int32_t level = 0; level < core.levels; ++level) {
        rank_t const partner = core.partner(rank, level);
        CHECK(core.partner(partner, level) == rank);
        rank_t const differing = core.index_of(rank) ^ core.index_of(partner);
        CHECK((differing & ((2 << level) - 1)) == 1 << level);
      }
  }
}

TEST_CASE("swing all_reduce: runs are contiguous, halve and double; nothing is copied") {
  std::vector<std::int32_t> sent;
  for (primitive const& step : steps::of<swing::all_reduce>({6, 16, 0}))
    if (!step.to.empty()) sent.push_back(step.operand.count);
  CHECK(sent == std::vector<std::int32_t>{8, 4, 2, 1, 1, 2, 4, 8});
  steps::for_each<swing::all_reduce>(16, 0, [](problem, primitive const& step) {
    CHECK(!step.copy);
    CHECK(step.operand.is_one_run());
  });
}

TEST_CASE("swing: a guest's block travels with its host's, in the messages that a power of two needs") {
  for (rank_t size = 3; size <= 33; ++size) {
    algo::detail::swing_fold const fold(size);
    if (fold.surplus == 0) continue;
    std::vector<rank_t> const of_core = steps::receivers<swing::all_gather>({0, fold.size(), 0});
    std::vector<rank_t> with_guest = of_core;
    with_guest.push_back(fold.size());
    CHECK(steps::receivers<swing::all_gather>({0, size, 0}) == with_guest);
    CHECK(steps::receivers<swing::reduce_scatter>({fold.size(), size, 0}) == std::vector<rank_t>{0});
    if (fold.surplus < fold.size() - 1)
      CHECK(steps::receivers<swing::reduce_scatter>({fold.size() - 1, size, 0}) ==
            steps::receivers<swing::reduce_scatter>({fold.size() - 1, fold.size(), 0}));
  }
  CHECK(scratch_chunks<swing::reduce_scatter>(8) == 4);
  CHECK(scratch_chunks<swing::reduce_scatter>(9) == 9);
}

TEST_CASE("swing: cost") {
  steps::check_costs<swing::all_reduce>({{1, {0, 0, 0}}, {2, {2, 2, 2}}, {8, {6, 6, 14}}, {9, {8, 7, 22}}});
  steps::check_costs<swing::reduce_scatter>({{1, {0, 0, 0}},
                                             {2, {1, 1, 1}},
                                             {3, {2, 2, 3}},
                                             {4, {2, 3, 3}},
                                             {6, {3, 4, 6}},
                                             {7, {4, 4, 7}},
                                             {16, {4, 7, 15}}});
  // Of 5 ranks, rank 0 sends blocks 0 and 4, then with 3 one more, then all.
  steps::check_costs<swing::all_gather>(
      {{1, {0, 0, 0}}, {2, {1, 1, 1}}, {4, {2, 3, 3}}, {5, {3, 4, 2 + 3 + 5}}, {16, {4, 7, 15}}});
}
