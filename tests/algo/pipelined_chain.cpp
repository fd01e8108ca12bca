// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/pipelined_chain.hpp: a step per chunk, what an exclusive scan moves
// first, and the law for the number of chunks. Who talks to whom is looked at in chain.cpp.
#include "collx/algo/pipelined_chain.hpp"

#include <cmath>
#include <string>

#include "algo/proven.hpp"
#include "algo/steps.hpp"
#include "collx/schedule/proves.hpp"
#include "collx/schedule/verify.hpp"

namespace {

using namespace collx;
using chain = algo::pipelined_chain<3>;

static_assert(is_proven<chain::broadcast> && is_proven<chain::reduce>);
static_assert(is_proven<chain::scan> && is_proven<chain::exclusive_scan>);
// The one that is in the list of all.
using longer = algo::pipelined_chain<8>;
static_assert(proves<longer::broadcast, 8, 8> && proves<longer::reduce, 8, 8>);
static_assert(keeps_rank_order<chain::scan>() && keeps_rank_order<chain::exclusive_scan>());

double time_us(double count, double bytes, double message_us, double bytes_per_us, double n) {
  return (n - 2 + count) * (message_us + bytes / (count * bytes_per_us));
}

}  // namespace

TEST_CASE("pipelined_chain: the name tells C") {
  CHECK(std::string(chain::name) == "pipelined_chain_3");
  CHECK(std::string(algo::pipelined_chain<128>::name) == "pipelined_chain_128");
}

TEST_CASE_TEMPLATE("pipelined_chain: one step for each chunk, in order", Schedule, chain::broadcast,
                   chain::reduce, chain::scan) {
  for (rank_t size = 1; size <= 9; ++size)
    for (rank_t rank = 0; rank < size; ++rank) {
      std::vector<primitive> const all = steps::of<Schedule>({rank, size, 0});
      REQUIRE(all.size() == 3);
      for (std::int32_t c = 0; c < 3; ++c) CHECK(all[static_cast<std::size_t>(c)].target.first == c);
    }
}

TEST_CASE("pipelined_chain exclusive_scan: a chunk is given, taken, combined") {
  CHECK(chain::exclusive_scan::step_count({0, 5, 0}) == 3);
  CHECK(chain::exclusive_scan::step_count({1, 5, 0}) == 2 * 3);
  CHECK(chain::exclusive_scan::step_count({2, 5, 0}) == 3 * 3);
  CHECK(chain::exclusive_scan::step_count({4, 5, 0}) == 2 * 3);
  CHECK(chain::exclusive_scan::step_count({0, 1, 0}) == 0);
  primitive const combines = chain::exclusive_scan::step({2, 5, 0}, 5);
  CHECK(combines.operand == region{place::output, 1, 1});
  CHECK(combines.from == peer_set{1, 1, 2});
  CHECK(combines.to == only(3));
  CHECK_FALSE(combines.complete);
}

TEST_CASE("pipelined_chain: no rank talks to any but its neighbours, whatever C is") {
  steps::for_each<algo::pipelined_chain<8>::exclusive_scan>(9, 0, [](problem p, primitive const& step) {
    for (rank_t const peer : steps::others(step.from, p)) CHECK(peer == p.rank - 1);
    for (rank_t const peer : steps::others(step.to, p)) CHECK(peer == p.rank + 1);
  });
}

TEST_CASE_TEMPLATE("pipelined_chain: of memory besides the caller's, one chunk under way is enough", Schedule,
                   chain::broadcast, chain::reduce, chain::scan, chain::exclusive_scan) {
  for (rank_t const size : {2, 3, 5, 8, 16}) {
    CHECK(scratch_chunks<Schedule>(size) == 0);
    CHECK(minimal_depth<Schedule>(size) == 1);
    CHECK(depth<Schedule>(size) <= 3);  // what an executor may have under way
  }
}

TEST_CASE("pipelined_chain: the best chunk count is that of the law") {
  static_assert(algo::best_chunk_count(1e5, 1, 1e4, 16) == 12);  // sqrt(14 * 1e5 / 1e4) = 11.8
  for (double const bytes : {1e3, 1e5, 1e6, 1e8})
    for (rank_t const n : {3, 4, 16, 100}) {
      std::int32_t const best = algo::best_chunk_count(bytes, 1.5, 8000, n, 1'000'000);
      double const law = std::sqrt((n - 2) * bytes / (1.5 * 8000));
      CHECK(std::abs(best - law) <= 1);
      CHECK(time_us(best, bytes, 1.5, 8000, n) <= time_us(best + 1, bytes, 1.5, 8000, n));
      if (best > 1) CHECK(time_us(best, bytes, 1.5, 8000, n) <= time_us(best - 1, bytes, 1.5, 8000, n));
    }
}

TEST_CASE("pipelined_chain: the best chunk count where there is nothing to weigh") {
  CHECK(algo::best_chunk_count(1e6, 1, 1e4, 1) == 1);
  CHECK(algo::best_chunk_count(1e6, 1, 1e4, 2) == 1);  // one hop: nothing overlaps
  CHECK(algo::best_chunk_count(0, 1, 1e4, 8) == 1);
  CHECK(algo::best_chunk_count(1e6, 1, 0, 8) == 1);
  CHECK(algo::best_chunk_count(1e6, 0, 1e4, 8) == 1024);  // messages cost nothing
  CHECK(algo::best_chunk_count(1e9, 1, 1e4, 8, 64) == 64);
}

TEST_CASE("pipelined_chain: cost") {
  steps::check_costs<chain::broadcast>({{1, {0, 0, 0}}, {2, {1, 3, 3}}, {8, {7, 3, 3}}});
  steps::check_costs<chain::scan>({{1, {0, 0, 0}}, {2, {1, 3, 3}}, {8, {7, 3, 3}}});
  steps::check_costs<chain::exclusive_scan>({{1, {0, 0, 0}}, {2, {1, 3, 3}}, {3, {2, 6, 6}}, {8, {7, 6, 6}}});
  CHECK(documented_cost<chain::reduce>(9, 4) == cost{4, 3, 3});
}
