// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/pairwise.hpp: every two ranks meet once, one partner at a time.
#include "collx/algo/pairwise.hpp"

#include <algorithm>

#include "algo/proven.hpp"
#include "algo/steps.hpp"
#include "collx/algo/bruck.hpp"
#include "collx/algo/direct.hpp"

namespace {

using namespace collx;
using exchange = algo::pairwise::all_to_all;

static_assert(is_proven<exchange>);
static_assert(collx::supports<exchange>(46'340) && !collx::supports<exchange>(46'341));
static_assert(collx::supports<algo::direct_one_shot::all_to_all>(46'340));
static_assert(!collx::supports<algo::direct_one_shot::all_to_all>(46'341));
static_assert(!collx::supports<algo::bruck<2>::all_to_all>(46'341));
static_assert(counts_for<exchange>() == known_counts::pairwise);  // all_to_all_v

}  // namespace

TEST_CASE("pairwise: every rank sends to every other one once") {
  CHECK(steps::receivers<exchange>({0, 4, 0}) == std::vector<rank_t>{3, 1, 2});
  CHECK(steps::receivers<exchange>({3, 4, 0}) == std::vector<rank_t>{0, 2, 1});
  for (rank_t size = 1; size <= 33; ++size)
    for (rank_t rank = 0; rank < size; ++rank) {
      std::vector<rank_t> met = steps::receivers<exchange>({rank, size, 0});
      std::sort(met.begin(), met.end());
      std::vector<rank_t> others;
      for (rank_t r = 0; r < size; ++r)
        if (r != rank) others.push_back(r);
      CHECK(met == others);
    }
}

TEST_CASE("pairwise: whom a rank sends to, it takes from next") {
  for (rank_t size = 2; size <= 33; ++size)
    for (rank_t rank = 0; rank < size; ++rank) {
      std::vector<primitive> const all = steps::of<exchange>({rank, size, 0});
      for (std::size_t s = 1; s < all.size(); s += 2) {
        CHECK(all[s].to.count == 1);
        CHECK(all[s].copy);
        CHECK(all[s].to == all[s + 1].from);
      }
    }
}

TEST_CASE("pairwise: cost") {
  steps::check_costs<exchange>(
      {{1, {0, 0, 0}}, {2, {1, 1, 1}}, {3, {3, 2, 2}}, {4, {3, 3, 3}}, {7, {7, 6, 6}}, {8, {7, 7, 7}}});
}
