// SPDX-License-Identifier: Apache-2.0
// The built-in tables, where what they choose is not the same for all that sends messages.
// component: tcp
#include "collx/tune/choice.hpp"

#include <string>

#include <doctest/doctest.h>

#include "collx/transport/composite.hpp"
#include "collx/transport/shm.hpp"
#include "collx/transport/tcp.hpp"
#include "collx/tune/reproducible.hpp"

namespace {

using namespace collx;

using tcp = transport::tcp::endpoint;
using composite = transport::composite<transport::shm, transport::tcp>::endpoint;

template <class Contract, class Endpoint, bool Commutative = true>
std::string choice_of(std::size_t bytes, rank_t size, tune::situation with = {}) {
  return tune::choose<Contract, Endpoint, Commutative>(
      bytes, size, with, []<class Algorithm>() { return std::string(Algorithm::name); });
}

template <class Endpoint>
std::string broadcast_of(std::size_t bytes, rank_t size) {
  return choice_of<contract::broadcast, Endpoint>(bytes, size);
}

constexpr std::size_t mebi = std::size_t{1} << 20;

}  // namespace

TEST_CASE("built-in tables: a longer broadcast of 3 or 4 ranks over tcp is shared, up to 8 MiB") {
  for (rank_t const size : {3, 4}) {
    CHECK(broadcast_of<tcp>(64 * 1024, size) == "binomial_tree");
    CHECK(broadcast_of<tcp>(64 * 1024 + 1, size) == "direct_two_shot");
    CHECK(broadcast_of<tcp>(8 * mebi, size) == "direct_two_shot");
    CHECK(broadcast_of<tcp>(8 * mebi + 1, size) == "chain");
  }
  CHECK(broadcast_of<tcp>(mebi, 2) == "direct_one_shot");
  CHECK(broadcast_of<tcp>(mebi, 5) == "chain");
}

TEST_CASE("built-in tables: where some peers are near, a chain crosses to the others once") {
  for (rank_t const size : {3, 4, 5}) CHECK(broadcast_of<composite>(mebi, size) == "chain");
  CHECK(broadcast_of<composite>(64 * 1024, 4) == "binomial_tree");
  CHECK(broadcast_of<composite>(mebi, 2) == "direct_one_shot");
}

TEST_CASE("built-in tables: over several hosts of as many ranks each, algorithms have two levels") {
  constexpr tune::situation grouped = tune::grouped_only;
  for (rank_t const size : {4, 6, 16}) {
    CHECK(choice_of<contract::all_reduce, composite>(8, size, grouped) ==
          "hierarchical<direct_one_shot, direct_one_shot>");
    CHECK(choice_of<contract::all_reduce, composite>(16'385, size, grouped) ==
          "hierarchical<direct_one_shot, recursive_doubling>");
    CHECK(choice_of<contract::all_reduce, composite>(mebi, size, grouped) ==
          "hierarchical<direct_one_shot, recursive_halving_doubling>");
    CHECK(choice_of<contract::all_reduce, composite>(4 * mebi + 1, size, grouped) ==
          "hierarchical<direct_one_shot, ring>");
    CHECK(choice_of<contract::all_gather, composite>(65'536, size, grouped) ==
          "hierarchical<direct_one_shot, direct_one_shot>");
    CHECK(choice_of<contract::reduce_scatter, composite>(65'537, size, grouped) ==
          "hierarchical<direct_one_shot, ring>");
    CHECK(choice_of<contract::all_to_all, composite>(16'384, size, grouped) ==
          "hierarchical<direct_one_shot, direct_one_shot>");
    CHECK(choice_of<contract::all_to_all, composite>(16'385, size, grouped) == "direct_one_shot");
    CHECK(choice_of<contract::barrier, composite>(0, size, grouped) ==
          "hierarchical<direct_one_shot, direct_one_shot>");
  }
  // Of many hosts one would have to do with too many others.
  constexpr char const* few_links = "hierarchical<direct_one_shot, recursive_doubling>";
  CHECK(choice_of<contract::all_reduce, composite>(8, 18, grouped) == few_links);
  CHECK(choice_of<contract::all_gather, composite>(8, 18, grouped) == few_links);
  CHECK(choice_of<contract::barrier, composite>(0, 18, grouped) == few_links);
  CHECK(choice_of<contract::reduce_scatter, composite>(8, 18, grouped) ==
        "hierarchical<direct_one_shot, recursive_halving_doubling>");
  constexpr tune::situation crowded = tune::grouped_and_sharing;
  CHECK(choice_of<contract::all_reduce, composite>(8, 8, crowded) == "binomial_tree");
  CHECK(choice_of<contract::reduce_scatter, composite>(8, 8, crowded) == "recursive_halving_doubling");
  CHECK(choice_of<contract::all_gather, composite>(8, 8, crowded) ==
        "hierarchical<direct_one_shot, recursive_doubling>");
  CHECK(choice_of<contract::all_gather, composite>(8, 10, crowded) ==
        choice_of<contract::all_gather, composite>(8, 10, grouped));
  CHECK(choice_of<contract::all_reduce, composite>(8, 4, tune::sharing_only) ==
        choice_of<contract::all_reduce, composite>(8, 4));
  // Where nobody is near, as over tcp alone, nothing changes.
  CHECK(choice_of<contract::all_reduce, tcp>(8, 4, grouped) == choice_of<contract::all_reduce, tcp>(8, 4));
}

TEST_CASE("built-in tables: ranks that share processors send few messages, and others few in a row") {
  constexpr tune::situation sharing = tune::sharing_only;
  for (rank_t const size : {3, 4, 8}) {
    CHECK(choice_of<contract::all_reduce, tcp>(8, size, sharing) == "binomial_tree");
    CHECK(choice_of<contract::all_reduce, tcp>(mebi, size, sharing) ==
          choice_of<contract::all_reduce, tcp>(mebi, size));
    CHECK(choice_of<contract::barrier, tcp>(0, size, sharing) == "binomial_tree");
    CHECK(choice_of<contract::all_gather, tcp>(16'384, size, sharing) == "recursive_doubling");
    CHECK(choice_of<contract::all_gather, tcp>(16'385, size, sharing) ==
          (size == 3 ? "direct_one_shot" : "recursive_doubling"));
    CHECK(choice_of<contract::all_gather, tcp>(65'537, size, sharing) == "direct_one_shot");
    CHECK(choice_of<contract::reduce_scatter, tcp>(8, size, sharing) == "recursive_halving_doubling");
    CHECK(choice_of<contract::all_to_all, tcp>(8192, size, sharing) == "bruck_2");
    CHECK(choice_of<contract::all_to_all, tcp>(8193, size, sharing) == "direct_one_shot");
  }
  for (rank_t const size : {3, 4}) {
    CHECK(choice_of<contract::all_reduce, tcp>(8, size) == "direct_one_shot");
    CHECK(choice_of<contract::barrier, tcp>(0, size) == "direct_one_shot");
    CHECK(choice_of<contract::broadcast, tcp>(8192, size, sharing) == "chain");
    CHECK(choice_of<contract::broadcast, tcp>(8193, size, sharing) == "binomial_tree");
    CHECK(choice_of<contract::reduce, tcp>(8192, size, sharing) == "direct_one_shot");
    CHECK(choice_of<contract::reduce, tcp>(8192, size) == "binomial_tree");
  }
  // Two ranks have one message each in any case; above eight nobody has measured.
  for (rank_t const size : {2, 9}) {
    CHECK(choice_of<contract::all_reduce, tcp>(8, size, sharing) ==
          choice_of<contract::all_reduce, tcp>(8, size));
    CHECK(choice_of<contract::all_gather, tcp>(8, size, sharing) ==
          choice_of<contract::all_gather, tcp>(8, size));
    CHECK(choice_of<contract::broadcast, tcp>(8, size, sharing) ==
          choice_of<contract::broadcast, tcp>(8, size));
  }
}

TEST_CASE("built-in tables: operators that need rank order have it also where ranks share processors") {
  auto const keeps = []<class Contract>(Contract, rank_t size) {
    return tune::choose<Contract, tcp, false>(8, size, tune::sharing_only, []<class Algorithm>() {
      return keeps_rank_order<schedule_for<Contract, Algorithm>>();
    });
  };
  for (rank_t const size : {3, 4, 8}) {
    CHECK(keeps(contract::all_reduce{}, size));
    CHECK(keeps(contract::reduce_scatter{}, size));
    CHECK(keeps(contract::reduce{}, size));
  }
}

TEST_CASE("built-in tables: where a level is asked for, no bits depend on processors or hosts") {
  auto const same = []<class Endpoint>(tune::situation with) {
    for (rank_t const size : {3, 4, 8}) {
      auto const chosen = [&](tune::situation now) {
        return tune::choose_reproducible<contract::all_reduce, Endpoint, true, reproducibility::run_to_run,
                                         false>(8, size, now, []<class Algorithm>() {
          return std::string(Algorithm::name);
        });
      };
      CHECK(chosen(with) == chosen({}));
    }
  };
  same.template operator()<tcp>(tune::sharing_only);
  same.template operator()<composite>(tune::grouped_and_sharing);
  same.template operator()<composite>(tune::situation{.all_near = true});
}
