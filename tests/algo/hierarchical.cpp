// SPDX-License-Identifier: Apache-2.0
// Two-level algorithms: proofs over the ways ranks can lie, and what travels between hosts.
#include "collx/algo/hierarchical.hpp"

#include <string>

#include <doctest/doctest.h>

#include "collx/algo/binomial_tree.hpp"
#include "collx/algo/bruck.hpp"
#include "collx/algo/chain.hpp"
#include "collx/algo/direct.hpp"
#include "collx/algo/double_binary_tree.hpp"
#include "collx/algo/knomial_tree.hpp"
#include "collx/algo/pairwise.hpp"
#include "collx/algo/recursive_doubling.hpp"
#include "collx/algo/recursive_halving_doubling.hpp"
#include "collx/algo/ring.hpp"
#include "collx/schedule/proves.hpp"
#include "collx/schedule/type_list.hpp"

namespace {

using namespace collx;
using algo::direct_one_shot;
using algo::direct_two_shot;
using algo::hierarchical;
using algo::ring;

using combinations =
    type_list<hierarchical<direct_one_shot, ring>, hierarchical<direct_one_shot, direct_one_shot>,
              hierarchical<direct_one_shot, direct_two_shot>, hierarchical<ring, direct_one_shot>,
              hierarchical<ring, ring>, hierarchical<direct_one_shot, algo::recursive_doubling>,
              hierarchical<direct_one_shot, algo::recursive_halving_doubling>,
              hierarchical<direct_one_shot, algo::binomial_tree>,
              hierarchical<ring, algo::recursive_halving_doubling>>;

static_assert(proves_hosts<hierarchical<direct_one_shot, ring>::all_reduce, 3, 3>);
static_assert(proves_hosts<hierarchical<direct_one_shot, direct_one_shot>::all_to_all, 3, 3>);
static_assert(algorithm_for<hierarchical<direct_one_shot, direct_one_shot>, contract::broadcast>);
static_assert(!algorithm_for<hierarchical<ring, ring>, contract::broadcast>);  // ring has no scatter
static_assert(!algorithm_for<hierarchical<ring, ring>, contract::scan>);
// Bruck's runs of blocks apart would have to be cut again.
static_assert(!algorithm_for<hierarchical<algo::bruck<2>, algo::pairwise>, contract::all_to_all>);
static_assert(algorithm_for<hierarchical<algo::pairwise, algo::pairwise>, contract::all_to_all>);

struct prove_shapes {
  rank_t inner, hosts;
  int proved = 0;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    shape const n{inner * hosts, inner};
    if (!supports<Schedule>(n)) return;
    rank_t const stride = n.size > 16 ? n.size / 3 + 1 : 1;
    for (rank_t root = 0; root < (Contract::rooted ? n.size : 1); root += stride) {
      verdict const found = verify<Schedule>(n, root);
      CAPTURE(std::string(Algorithm::name));
      CAPTURE(std::string(Contract::name));
      CAPTURE(inner);
      CAPTURE(hosts);
      CAPTURE(root);
      CHECK(std::string(name(found.what)) == "none");
      ++proved;
    }
  }
};

// Messages, and chunks, that a rank sends to other hosts.
template <class Schedule>
cost between_hosts(shape n, rank_t rank) {
  problem const p{rank, n.size, 0, n.inner};
  cost sent;
  for (std::int32_t i = 0; i < Schedule::step_count(p); ++i) {
    primitive const step = Schedule::step(p, i);
    for (std::int32_t k = 0; k < step.to.count; ++k)
      if (step.to.member(k, n.size) / n.inner != rank / n.inner) {
        ++sent.messages;
        sent.chunks += step.from.empty() ? step.operand.count : step.target.count;
      }
  }
  return sent;
}

}  // namespace

TEST_CASE("hierarchical: every combination is proved for 1..8 ranks on 1..8 hosts") {
  int proved = 0;
  for (rank_t inner = 1; inner <= 8; ++inner)
    for (rank_t hosts = 1; hosts <= 8; ++hosts) {
      prove_shapes shapes{inner, hosts};
      for_each_schedule<combinations, contract::all>(shapes);
      proved += shapes.proved;
    }
  CHECK(proved > 1000);
}

TEST_CASE("hierarchical: odd shapes and larger ones") {
  for (shape const n : {shape{48, 16}, shape{63, 7}, shape{64, 2}, shape{65, 13}, shape{128, 8}}) {
    prove_shapes shapes{n.inner, n.size / n.inner};
    for_each_schedule<combinations, contract::all>(shapes);
  }
}

TEST_CASE("hierarchical reduce: right whatever it is made of, in rank order if its parts are") {
  using algo::binomial_tree;
  using halving = algo::recursive_halving_doubling;
  using parts = type_list<hierarchical<binomial_tree, halving>, hierarchical<halving, binomial_tree>,
                          hierarchical<direct_two_shot, algo::double_binary_tree>,
                          hierarchical<algo::chain, algo::pipelined_chain<8>>>;
  for (shape const n :
       {shape{1, 1}, shape{6, 1}, shape{6, 6}, shape{6, 2}, shape{12, 4}, shape{15, 3}, shape{20, 5}})
    for (rank_t root = 0; root < n.size; ++root)
      parts::for_each([&]<class Algorithm>() {
        CAPTURE(std::string(Algorithm::name));
        CAPTURE(n.size);
        CAPTURE(n.inner);
        CAPTURE(root);
        verdict const found = verify<typename Algorithm::reduce>(n, root);
        CHECK(std::string(name(found.what)) == "none");
      });
  static_assert(keeps_rank_order<hierarchical<binomial_tree, halving>::reduce>());
  using ordered_parts = hierarchical<direct_one_shot, algo::recursive_doubling>;
  static_assert(keeps_rank_order<ordered_parts::all_reduce>());
  static_assert(keeps_rank_order<hierarchical<direct_one_shot, direct_one_shot>::reduce_scatter>());
  static_assert(!keeps_rank_order<hierarchical<direct_one_shot, algo::ring>::all_reduce>());
  static_assert(!keeps_rank_order<hierarchical<algo::ring, direct_one_shot>::reduce_scatter>());
}

TEST_CASE("hierarchical reduce: one message leaves a host") {
  using S = hierarchical<direct_one_shot, direct_one_shot>::reduce;
  shape const n{12, 4};  // root 0: of ranks 4 and 8 one message each
  for (rank_t rank = 0; rank < n.size; ++rank)
    CHECK(between_hosts<S>(n, rank) == cost{0, rank % 4 == 0 && rank != 0, rank % 4 == 0 && rank != 0});
}

TEST_CASE("hierarchical gather and scatter: right whatever they are made of; one message between hosts") {
  using algo::binomial_tree;
  using parts =
      type_list<hierarchical<binomial_tree, binomial_tree>, hierarchical<direct_one_shot, binomial_tree>,
                hierarchical<algo::knomial_tree<4>, direct_one_shot>>;
  for (shape const n :
       {shape{1, 1}, shape{6, 1}, shape{6, 6}, shape{6, 2}, shape{12, 4}, shape{15, 3}, shape{25, 5}})
    for (rank_t root = 0; root < n.size; ++root)
      parts::for_each([&]<class Algorithm>() {
        CAPTURE(std::string(Algorithm::name));
        CAPTURE(n.size);
        CAPTURE(n.inner);
        CAPTURE(root);
        CHECK(std::string(name(verify<typename Algorithm::gather>(n, root).what)) == "none");
        CHECK(std::string(name(verify<typename Algorithm::scatter>(n, root).what)) == "none");
      });
  using direct = hierarchical<direct_one_shot, direct_one_shot>;
  for (rank_t rank = 0; rank < 12; ++rank) {
    bool const leads = rank % 4 == 0 && rank != 0;
    CHECK(between_hosts<direct::gather>({12, 4}, rank) == cost{0, leads, 4 * leads});
    CHECK(between_hosts<direct::scatter>({12, 4}, rank) == cost{0, 2 * (rank == 0), 8 * (rank == 0)});
  }
}

TEST_CASE("hierarchical: groups that do not divide the ranks are not supported") {
  using S = hierarchical<direct_one_shot, ring>::all_reduce;
  CHECK(supports<S>({12, 4}));
  CHECK_FALSE(supports<S>({12, 5}));
  CHECK_FALSE(supports<S>({4, 8}));
}

TEST_CASE("hierarchical: an all_to_all sends one message per rank to every other host") {
  using S = hierarchical<direct_one_shot, direct_one_shot>::all_to_all;
  for (rank_t inner = 1; inner <= 6; ++inner)
    for (rank_t hosts = 1; hosts <= 6; ++hosts)
      for (rank_t rank = 0; rank < inner * hosts; ++rank)
        CHECK(between_hosts<S>({inner * hosts, inner}, rank) == cost{0, hosts - 1, (hosts - 1) * inner});
}

TEST_CASE("hierarchical: an all_reduce sends a share of 1/L between hosts") {
  using S = hierarchical<direct_one_shot, ring>::all_reduce;
  shape const n{16, 4};
  // Of each of the four lanes' four chunks, three go round twice.
  CHECK(chunk_count<S>(n) == 16);
  for (rank_t rank = 0; rank < n.size; ++rank) CHECK(between_hosts<S>(n, rank) == cost{0, 6, 6});
}

TEST_CASE("hierarchical: names say of what it is made") {
  CHECK(std::string(hierarchical<direct_one_shot, ring>::name) == "hierarchical<direct_one_shot, ring>");
}
