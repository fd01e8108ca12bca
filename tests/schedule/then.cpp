// SPDX-License-Identifier: Apache-2.0
// One schedule after the other, proved as one.
#include "collx/schedule/then.hpp"

#include <string>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/recursive_doubling.hpp"
#include "collx/algo/recursive_halving_doubling.hpp"
#include "collx/algo/ring.hpp"
#include "collx/schedule/proves.hpp"

namespace {

using namespace collx;

template <class S>
void prove() {
  for (rank_t n = 1; n <= 33; ++n)
    for (rank_t root = 0; root < (S::contract::rooted ? n : 1); ++root) {
      if (!supports<S>(n)) continue;
      CAPTURE(n);
      CAPTURE(root);
      CHECK(std::string(name(verify<S>(n, root).what)) == "none");
    }
}

using scattered = then<contract::broadcast, algo::direct_one_shot::scatter, algo::ring::all_gather>;
static_assert(proves<scattered, 1, 6>);

// The parts' order matters: what has been gathered cannot be reduced.
using reversed = then<contract::all_reduce, algo::ring::all_gather, algo::ring::reduce_scatter>;

}  // namespace

TEST_CASE("then: reduce_scatter and all_gather make an all_reduce, whatever they are") {
  prove<then<contract::all_reduce, algo::ring::reduce_scatter, algo::ring::all_gather>>();
  prove<then<contract::all_reduce, algo::direct_one_shot::reduce_scatter, algo::ring::all_gather>>();
  prove<then<contract::all_reduce, algo::ring::reduce_scatter, algo::recursive_doubling::all_gather>>();
}

TEST_CASE("then: scatter and all_gather make a broadcast") { prove<scattered>(); }

TEST_CASE("then: a wrong order is refused") { CHECK_FALSE(verify<reversed>(4).ok()); }

TEST_CASE("then: a part that needs equal blocks is refused where blocks may differ") {
  // Halving keeps partial sums of one block where those of another were.
  using halving = then<contract::all_reduce, algo::recursive_halving_doubling::reduce_scatter,
                       algo::recursive_doubling::all_gather>;
  CHECK(verify<halving>(4).what == fault::wrong_size);
}

TEST_CASE("then: costs add up") {
  CHECK(documented_cost<scattered>(8) == cost{1 + 7, 7 + 7, 7 + 7});
  CHECK(documented_cost<then<contract::all_reduce, algo::ring::reduce_scatter, algo::ring::all_gather>>(5) ==
        algo::ring::all_reduce::documented_cost(5));
}
