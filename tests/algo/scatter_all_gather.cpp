// SPDX-License-Identifier: Apache-2.0
// What is particular to collx/algo/scatter_all_gather.hpp: leaders keep their block in the output, and
// any all-gather will do. That schedules may follow each other is tested in schedule/then.cpp.
#include "collx/algo/scatter_all_gather.hpp"

#include <string>

#include "algo/proven.hpp"
#include "algo/steps.hpp"
#include "collx/algo/direct.hpp"
#include "collx/algo/recursive_doubling.hpp"
#include "collx/schedule/verify.hpp"

namespace {

using namespace collx;
using over_ring = algo::scatter_all_gather<algo::ring>;
using over_doubling = algo::scatter_all_gather<algo::recursive_doubling>;

static_assert(is_proven<over_ring::broadcast>);
static_assert(is_proven<over_doubling::broadcast>);

bool is_run(region const& r, std::int32_t first, std::int32_t count) {
  return r.where == place::output && r.first == first && r.count == count && r.is_one_run();
}

}  // namespace

TEST_CASE("scatter_all_gather: the name tells the second half") {
  CHECK(std::string(over_ring::name) == "scatter_all_gather_ring");
  CHECK(std::string(over_doubling::name) == "scatter_all_gather_recursive_doubling");
}

TEST_CASE("scatter_all_gather: no scratch, and every chunk is stored in its place") {
  CHECK(scratch_chunks<over_ring::broadcast>(8) == 0);
  // Of root 0, rank 4 leads 4..7: it takes four chunks and gives two and one away before the ring begins.
  std::vector<primitive> const all = steps::of<over_ring::broadcast>({4, 8, 0});
  CHECK(is_run(all[0].target, 4, 4));
  CHECK(all[1].to == only(6));
  CHECK(is_run(all[1].operand, 6, 2));
  CHECK(all[2].to == only(5));
  CHECK(is_run(all[2].operand, 5, 1));
  CHECK(all.size() == 3 + 8);
}

TEST_CASE_TEMPLATE("scatter_all_gather: right with any all-gather, for any size and root", Algorithm,
                   algo::ring, algo::recursive_doubling, algo::direct_one_shot) {
  for (rank_t size = 1; size <= 17; ++size)
    for (rank_t root = 0; root < size; ++root)
      CHECK(verify<typename algo::scatter_all_gather<Algorithm>::broadcast>(size, root).ok());
}

TEST_CASE("scatter_all_gather: cost") {
  steps::check_costs<over_ring::broadcast>(
      {{1, {0, 0, 0}}, {2, {2, 2, 2}}, {5, {3 + 4, 3 + 4, 2 * 4}}, {8, {3 + 7, 3 + 7, 2 * 7}}});
  CHECK(documented_cost<over_ring::broadcast>(5, 0) == cost{2 + 4, 3 + 4, 2 * 4});
}
