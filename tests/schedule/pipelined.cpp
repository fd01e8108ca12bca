// SPDX-License-Identifier: Apache-2.0
// Schedules on one part of the vector after the other, proved as one.
#include "collx/schedule/pipelined.hpp"

#include <string>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/schedule/proves.hpp"

namespace {

using namespace collx;

static_assert(proves<pipelined<algo::chain::broadcast, 4>, 1, 6>);

struct prove_pipelined {
  int proved = 0;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    using S = pipelined<Schedule, 3>;
    static_assert(level_of<S>() == level_of<Schedule>());  // which is proved below
    for (rank_t n : {1, 2, 3, 4, 5, 7, 8, 16, 17})
      for (rank_t root = 0; root < (Contract::rooted ? n : 1); root += n / 3 + 1) {
        if (!supports<S>(n)) continue;
        verdict const found = verify<S>(n, root);
        // Bruck's runs of several blocks apart cannot be cut again; they are refused, not moved wrongly.
        if (found.what == fault::region_out_of_range && std::is_same_v<Contract, contract::all_to_all> &&
            std::string(Algorithm::name).starts_with("bruck"))
          continue;
        CAPTURE(std::string(Algorithm::name));
        CAPTURE(std::string(Contract::name));
        CAPTURE(n);
        CAPTURE(root);
        CAPTURE(found.rank);
        CAPTURE(found.step);
        CHECK(std::string(name(found.what)) == "none");
        ++proved;
      }
  }
};

}  // namespace

TEST_CASE("pipelined: every algorithm that can be") {
  prove_pipelined all;
  for_each_schedule<algo::all, contract::all>(all);
  CHECK(all.proved > 400);
}

TEST_CASE("pipelined: the first part reaches the end of a chain before the last has left its begin") {
  using S = pipelined<algo::chain::broadcast, 8>;
  // Eight messages per rank, and the chain of dependent ones no longer than the chain of ranks.
  cost const counted = verify<S>(5, 0).counted;
  CHECK(counted.messages == 8);
  CHECK(counted.rounds == 4);
  CHECK(documented_cost<S>(5).chunks == 8);
}
