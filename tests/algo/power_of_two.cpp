// SPDX-License-Identifier: Apache-2.0
// The fold of collx/algo/power_of_two.hpp keeps neighbours together, for every number of ranks.
#include "collx/algo/power_of_two.hpp"

#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace collx;
using namespace collx::algo::detail;

static_assert(floor_log2(1) == 0 && floor_log2(2) == 1 && floor_log2(3) == 1 && floor_log2(4) == 2);
static_assert(ceil_log2(1) == 0 && ceil_log2(2) == 1 && ceil_log2(3) == 2 && ceil_log2(4) == 2);
static_assert(floor_log2(0x7fffffff) == 30 && ceil_log2(0x7fffffff) == 31);
static_assert(is_power_of_two(1) && is_power_of_two(64) && !is_power_of_two(0) && !is_power_of_two(12));
static_assert(trailing_zeros(12, 9) == 2 && trailing_zeros(1, 9) == 0 && trailing_zeros(0, 9) == 9);
static_assert(block_start(13, 0) == 13 && block_start(13, 2) == 12 && block_start(13, 3) == 8);

constexpr power_of_two_core six(6);  // 0 2 | 4 5 in the core; 1 with 0, 3 with 2
static_assert(six.size() == 4 && six.surplus == 2);
static_assert(six.rank_of(0) == 0 && six.rank_of(1) == 2 && six.rank_of(2) == 4 && six.rank_of(3) == 5);
static_assert(six.partner(0, 0) == 2 && six.partner(0, 1) == 4 && six.partner(5, 1) == 2);
static_assert(six.chunks_of_block(place::output, 2, 0) == region{place::output, 2, 2});
static_assert(six.chunks_of_block(place::output, 2, 1) == region{place::output, 0, 4});
static_assert(six.chunks_of_block(place::output, 5, 1) == region{place::output, 4, 2});

}  // namespace

TEST_CASE("power_of_two_core: every rank is in the core or the guest of the rank below it") {
  for (rank_t size = 1; size <= 300; ++size) {
    power_of_two_core const core(size);
    CHECK(is_power_of_two(core.size()));
    CHECK(core.size() + core.surplus == size);
    CHECK(core.surplus < core.size());
    rank_t members = 0;
    for (rank_t rank = 0; rank < size; ++rank) {
      if (core.is_outside(rank)) CHECK(core.has_guest(rank - 1));
      if (core.has_guest(rank)) CHECK(core.is_outside(rank + 1));
      if (core.is_outside(rank)) continue;
      CHECK(core.rank_of(core.index_of(rank)) == rank);
      ++members;
    }
    CHECK(members == core.size());
  }
}

TEST_CASE("power_of_two_core: numbers in the core ascend with ranks, and end at the size") {
  for (rank_t size = 1; size <= 300; ++size) {
    power_of_two_core const core(size);
    for (rank_t index = 0; index < core.size(); ++index) CHECK(core.rank_of(index) < core.rank_of(index + 1));
    CHECK(core.rank_of(core.size()) == size);
  }
}

TEST_CASE("power_of_two_core: the blocks of one level cut all chunks into contiguous runs") {
  for (rank_t size = 1; size <= 100; ++size) {
    power_of_two_core const core(size);
    for (std::int32_t level = 0; level <= core.levels; ++level) {
      std::int32_t next = 0;
      for (rank_t index = 0; index < core.size(); index += 1 << level) {
        region const run = core.chunks_of_block(place::input, core.rank_of(index), level);
        CHECK(run.first == next);
        next = run.first + run.count;
      }
      CHECK(next == size);
    }
  }
}
