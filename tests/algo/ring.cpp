// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/ring.hpp: neighbours, and the one formula for the chunk.
#include "collx/algo/ring.hpp"

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using algo::ring;

static_assert(is_proven<ring::all_reduce>);
static_assert(is_proven<ring::reduce_scatter>);
static_assert(is_proven<ring::all_gather>);
static_assert(!keeps_rank_order<ring::all_reduce>() && !keeps_rank_order<ring::reduce_scatter>());

}  // namespace

TEST_CASE_TEMPLATE("ring: every rank takes from its left and sends to its right neighbour only", Schedule,
                   ring::all_reduce, ring::reduce_scatter, ring::all_gather) {
  for (rank_t size = 1; size <= 33; ++size)
    steps::for_each<Schedule>(size, 0, [](problem p, primitive const& step) {
      for (rank_t const sender : steps::others(step.from, p)) CHECK(sender == (p.rank + p.size - 1) % p.size);
      for (rank_t const receiver : steps::others(step.to, p)) CHECK(receiver == (p.rank + 1) % p.size);
    });
}

TEST_CASE("ring all_reduce: at step s the chunk (rank - 1 - s) mod n passes") {
  std::vector<std::int32_t> chunks;
  for (primitive const& step : steps::of<ring::all_reduce>({1, 4, 0})) chunks.push_back(step.operand.first);
  CHECK(chunks == std::vector<std::int32_t>{0, 3, 2, 1, 0, 3, 2});
}

TEST_CASE("ring all_reduce: one step completes a chunk, and it is the chunk of the rank's own number") {
  for (rank_t size = 2; size <= 33; ++size) {
    std::int32_t completed = 0;
    steps::for_each<ring::all_reduce>(size, 0, [&](problem p, primitive const& step) {
      if (!step.complete) return;
      ++completed;
      CHECK(step.reduce);
      CHECK(step.target.first == p.rank);
    });
    CHECK(completed == size);
  }
}

TEST_CASE("ring: nothing is copied and nothing lives in scratch") {
  CHECK(scratch_chunks<ring::all_reduce>(8) == 0);
  steps::for_each<ring::all_reduce>(8, 0, [](problem, primitive const& step) { CHECK(!step.copy); });
}

TEST_CASE("ring: cost") {
  steps::check_costs<ring::all_reduce>({{1, {0, 0, 0}}, {2, {2, 2, 2}}, {3, {4, 4, 4}}, {8, {14, 14, 14}}});
  steps::check_costs<ring::reduce_scatter>({{1, {0, 0, 0}}, {2, {1, 1, 1}}, {8, {7, 7, 7}}});
  steps::check_costs<ring::all_gather>({{1, {0, 0, 0}}, {2, {1, 1, 1}}, {8, {7, 7, 7}}});
}
