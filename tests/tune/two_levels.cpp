// SPDX-License-Identifier: Apache-2.0
// What schedules send inside groups and between them, against numbers worked out by hand and the verifier's.
// thread sanitizer: no, there is one thread
#include "collx/tune/two_levels.hpp"

#include <string>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/algo/hierarchical.hpp"

namespace tune = collx::tune;
using namespace collx::algo;
using collx::rank_t;
using collx::shape;

namespace {

void check(tune::factors const& f, double rounds, double messages, double sent) {
  CHECK(f.rounds == doctest::Approx(rounds));
  CHECK(f.messages == doctest::Approx(messages));
  CHECK(f.sent_blocks == doctest::Approx(sent));
}

}  // namespace

TEST_CASE("two levels: a ring leaves a group by one rank, and its longest chain once per group") {
  // 14 hops from rank to rank; with the first from group to group, every fourth is.
  auto const ring = tune::level_factors_of<collx::algo::ring::all_reduce>({8, 4});
  check(ring.near, 10, 14, 1.75);
  check(ring.far, 4, 14, 1.75);
}

TEST_CASE("two levels: what a group's ranks send to other groups goes out one way") {
  // 4 ranks send their vector to 4 others each; what is near they send to 3.
  auto const direct = tune::level_factors_of<direct_one_shot::all_reduce>({8, 4});
  check(direct.near, 0, 3, 3);
  check(direct.far, 1, 4, 16);
}

TEST_CASE("two levels: hierarchical algorithms send no more between groups than they must") {
  using two = hierarchical<direct_one_shot, collx::algo::ring>;
  // Quarters inside, and on each of 4 lanes a ring of two hosts about a quarter.
  auto const reduce = tune::level_factors_of<two::all_reduce>({8, 4});
  check(reduce.near, 2, 6, 1.5);
  check(reduce.far, 2, 2, 1);
  // One message from host to host; 16 blocks have to go there all the same.
  auto const exchange =
      tune::level_factors_of<hierarchical<direct_one_shot, direct_one_shot>::all_to_all>({8, 4});
  check(exchange.near, 1, 3, 6);
  check(exchange.far, 1, 1, 16);
}

TEST_CASE("two levels: without groups, or in one group, everything is of one kind") {
  for (shape const n : {shape{8, 1}, shape{8, 8}}) {
    auto const ring = tune::level_factors_of<collx::algo::ring::all_reduce>(n);
    check(ring.near, 0, 0, 0);
    check(ring.far, 14, 14, 1.75);
  }
}

TEST_CASE("two levels: the chain of a schedule is as long as the verifier counted") {
  collx::for_each_schedule<all, collx::contract::all>([]<class Algorithm, class Contract, class S>() {
    for (rank_t const n : {2, 3, 5, 6, 8, 11, 16}) {
      if (!collx::supports<S>(n)) continue;
      collx::cost const documented = collx::documented_cost<S>(n, 0);
      tune::detail::walked_schedule const walked{&S::step_count, &S::step, n, n};
      tune::detail::chain_walk all(walked, documented.messages);
      all.run();
      tune::detail::chain_length const chain = all.longest;
      CAPTURE(std::string(Algorithm::name));
      CAPTURE(std::string(Contract::name));
      CAPTURE(n);
      CHECK(chain.near == documented.rounds);  // one group: nothing is far
      CHECK(chain.far == 0);
    }
  });
}

TEST_CASE("two levels: links are busy for what they send or get, and vectors wait for those before them") {
  auto const links = []<class S>(double busiest, double longest) {
    tune::link_use const found = tune::level_factors_of<S>(8).far_links;
    CHECK(found.busiest == doctest::Approx(busiest));
    CHECK(found.longest == doctest::Approx(longest));
  };
  links.operator()<collx::algo::ring::all_reduce>(1.75, 1.75);  // all at once, all the time
  links.operator()<recursive_halving_doubling::all_reduce>(1.75, 1.75);
  links.operator()<direct_one_shot::reduce>(7, 7);               // the root gets seven, one after the other
  links.operator()<binomial_tree::broadcast>(3, 3);              // the root sends three
  links.operator()<chain::broadcast>(1, 7);                      // from rank to rank
  links.operator()<pipelined_chain<8>::broadcast>(1, 14.0 / 8);  // the last rank waits for six eighths
}

TEST_CASE("two levels: of a long vector only the first fragment waits; memory that is read has no links") {
  auto const chain = tune::level_factors_of<collx::algo::chain::broadcast>(8);
  constexpr tune::log_gp bytes{.gap_us_per_byte = 1};
  constexpr tune::level_models messages{.near = {bytes, true}, .far = {bytes, true}};
  constexpr tune::level_models mapped{.near = {bytes}, .far = {bytes}};
  CHECK(messages(chain, 100) == doctest::Approx(700));
  CHECK(messages(chain, 100, 6) == doctest::Approx(200));
  CHECK(mapped(chain, 100) == doctest::Approx(100));
}

TEST_CASE("two levels: of more ranks than are walked, every round counts as far") {
  auto const ring = tune::level_factors_of<collx::algo::ring::all_gather>({256, 8});
  check(ring.near, 0, 255, 255);
  check(ring.far, 255, 255, 255);
}

TEST_CASE("two levels: a far message costs what the far model says, a near one what the near one does") {
  constexpr tune::level_models models{.near = {{.round_us = 1}}, .far = {{.round_us = 100}}};
  auto const flat = tune::level_factors_of<collx::algo::ring::all_reduce>({8, 4});
  auto const two =
      tune::level_factors_of<hierarchical<direct_one_shot, collx::algo::ring>::all_reduce>({8, 4});
  CHECK(models(flat, 8) == doctest::Approx(10 + 400));
  CHECK(models(two, 8) == doctest::Approx(2 + 200));
}
