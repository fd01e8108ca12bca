// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/push_pull.hpp: who copies which part, and what the push waits for.
#include "collx/algo/push_pull.hpp"

#include "algo/proven.hpp"
#include "algo/steps.hpp"

namespace {

using namespace collx;
using broadcast = algo::push_pull::broadcast;
using all_gather = algo::push_pull::all_gather;

static_assert(is_proven<broadcast>);
static_assert(is_proven<all_gather>);
static_assert(shares_copying<broadcast>(2));

}  // namespace

TEST_CASE("push_pull broadcast: every rank copies as much") {
  for (rank_t size = 2; size <= 17; ++size)
    for (rank_t root = 0; root < size; ++root)
      for (rank_t rank = 0; rank < size; ++rank) {
        problem const p{rank, size, root};
        std::int32_t pushed = 0, pulled = 0;
        for (primitive const& step : steps::of<broadcast>(p)) {
          auto const receivers = static_cast<std::int32_t>(steps::others(step.to, p).size());
          if (step.push) pushed += step.operand.count * receivers;
          if (!step.from.empty() && step.target.first != 0) pulled += step.target.count;
        }
        CHECK(pushed == (rank == root ? size - 1 : 0));
        CHECK(pulled == (rank == root ? 0 : size - 1));
      }
}

TEST_CASE("push_pull broadcast: nothing is pushed before everybody has said where to") {
  std::vector<primitive> const root = steps::of<broadcast>({1, 3, 1});
  REQUIRE(root.size() == 4);
  CHECK(root[1].from == peer_set{2, 1, 2});
  CHECK(root[1].target.count == 0);
  CHECK(root[2].push);
  primitive const greeting = steps::of<broadcast>({0, 3, 1})[0];
  CHECK(greeting.to == only(1));
  CHECK(greeting.operand.count == 0);
}

TEST_CASE("push_pull all_gather: one step stores the own block here and to everybody who has said where to") {
  for (rank_t size = 2; size <= 17; ++size)
    for (rank_t rank = 0; rank < size; ++rank) {
      problem const p{rank, size, 0};
      std::vector<primitive> const all = steps::of<all_gather>(p);
      REQUIRE(all.size() == 4);
      std::vector<rank_t> const greeted_by = steps::others(all[1].from, p);
      CHECK(all[0].operand.count == 0);
      CHECK(all[1].target.count == 0);
      CHECK(greeted_by.size() == static_cast<std::size_t>(size - 1));
      CHECK(all[2].push);
      CHECK(all[2].store);
      CHECK(all[2].operand == region{place::input, rank, 1});
      CHECK(all[2].target == region{place::output, rank, 1});
      CHECK(steps::others(all[2].to, p) == greeted_by);
    }
}

TEST_CASE("push_pull: cost") {
  steps::check_costs<all_gather>({{1, {0, 0, 0}}, {2, {2, 2, 1}}, {3, {2, 4, 2}}, {8, {2, 14, 7}}});
  steps::check_costs<broadcast>({{1, {0, 0, 0}}, {2, {2, 2, 2}}, {3, {2, 4, 6}}, {8, {2, 14, 56}}});
}
