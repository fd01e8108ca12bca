// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/bidirectional_ring.hpp: neighbours only, and an even load both ways.
#include "collx/algo/bidirectional_ring.hpp"

#include <array>

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using algo::bidirectional_ring;

static_assert(is_proven<bidirectional_ring::all_reduce>);
static_assert(is_proven<bidirectional_ring::reduce_scatter>);
static_assert(is_proven<bidirectional_ring::all_gather>);

// Chunks that rank 1 of `size` sends to its left and its right.
template <class Schedule>
std::array<std::int32_t, 2> load(rank_t size) {
  std::array<std::int32_t, 2> sum{};
  for (primitive const& step : steps::of<Schedule>({1, size, 0}))
    for (rank_t const peer : steps::others(step.to, {1, size, 0}))
      sum[peer == 0 ? 0 : 1] += step.target.count;
  return sum;
}

}  // namespace

TEST_CASE_TEMPLATE("bidirectional_ring: messages go between neighbours only", Schedule,
                   bidirectional_ring::all_reduce, bidirectional_ring::reduce_scatter,
                   bidirectional_ring::all_gather) {
  for (rank_t size = 2; size <= 33; ++size)
    steps::for_each<Schedule>(size, 0, [size](problem p, primitive const& step) {
      CHECK(!step.copy);
      for (rank_t const peer : steps::others(step.to, p)) {
        rank_t const distance = (peer - p.rank + size) % size;
        CHECK((distance == 1 || distance == size - 1));
      }
    });
}

TEST_CASE("bidirectional_ring: both directions carry the same, or nearly") {
  CHECK(load<bidirectional_ring::reduce_scatter>(8) == std::array{7, 7});
  CHECK(load<bidirectional_ring::all_gather>(9) == std::array{4, 4});
  CHECK(load<bidirectional_ring::all_gather>(8) == std::array{3, 4});
  CHECK(load<bidirectional_ring::all_reduce>(8) == std::array{13, 15});
}

TEST_CASE("bidirectional_ring: cost") {
  steps::check_costs<bidirectional_ring::all_reduce>(
      {{1, {0, 0, 0}}, {2, {2, 3, 4}}, {3, {3, 6, 8}}, {8, {11, 21, 28}}, {9, {12, 24, 32}}});
  steps::check_costs<bidirectional_ring::reduce_scatter>({{1, {0, 0, 0}}, {2, {1, 2, 2}}, {8, {7, 14, 14}}});
  steps::check_costs<bidirectional_ring::all_gather>({{1, {0, 0, 0}}, {2, {1, 1, 1}}, {8, {4, 7, 7}}});
}
