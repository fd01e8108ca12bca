// SPDX-License-Identifier: Apache-2.0
// What the verifier finds of the bits of reductions: brackets, order and passes of the sums, compared
// between ranks and between chunks.
#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/algo/hierarchical.hpp"
#include "collx/schedule/then.hpp"
#include "collx/schedule/verify.hpp"

namespace {

using namespace collx;
using enum reproducibility;

// Everybody adds its own vector first: other brackets on every rank.
struct own_first : algo::direct_one_shot::all_reduce {
  static constexpr bool keeps_rank_order = false;
  static constexpr reproducibility reproduces = none;
  static constexpr primitive step(problem p, std::int32_t s) {
    primitive step = algo::direct_one_shot::all_reduce::step(p, s);
    if (s == 1) step.from = {p.rank, 1, p.size};
    return step;
  }
};

// The same brackets, but rank 0 rounds after two of three: where a pass ends can show.
struct two_passes {
  using contract = contract::all_reduce;
  static constexpr bool supports(rank_t n) { return n == 3; }
  static constexpr std::int32_t chunk_count(rank_t) { return 1; }
  static constexpr std::int32_t step_count(problem p) { return p.rank == 0 ? 3 : 2; }
  static constexpr primitive step(problem p, std::int32_t s) {
    region const in{place::input, 0, 1}, out{place::output, 0, 1};
    if (s == 0) return {.to = everybody_after(p.rank, 3), .operand = in, .copy = true};
    primitive sum{.operand = in, .target = out, .reduce = true, .store = true, .complete = true};
    sum.from = {0, 1, 3};
    if (p.rank != 0) return sum;
    if (s == 1) sum.from.count = 2, sum.complete = false;
    else sum.from = {0, 2, 2}, sum.operand = out;
    return sum;
  }
  static constexpr cost documented_cost(rank_t) { return {1, 2, 2}; }
};

struct claims_too_much : own_first {
  static constexpr reproducibility reproduces = same_on_every_rank;
};

}  // namespace

TEST_CASE("verify: sums that differ between ranks have no level") {
  CHECK(verify<own_first>(3).ok());
  CHECK(verify<own_first>(3).level == none);
  CHECK(verify<own_first>(1).level == any_transport);
  CHECK(verify<claims_too_much>(3).what == fault::wrong_level);
  CHECK(verify<two_passes>(3).ok());
  CHECK(verify<two_passes>(3).level == none);
}

TEST_CASE("verify: sums that differ between chunks repeat from run to run") {
  CHECK(verify<algo::ring::all_reduce>(4).level == run_to_run);
  CHECK(verify<algo::direct_two_shot::all_reduce>(4).level == any_transport);
}

TEST_CASE("verify: where nothing is combined no bit can change") {
  CHECK(verify<algo::ring::all_gather>(4).level == any_size);
  CHECK(level_of<algo::chain::broadcast>() == any_size);
  CHECK(level_of<algo::ring::reduce_scatter>() == run_to_run);
}

TEST_CASE("a combination has the lowest level of its parts") {
  using algo::direct_one_shot, algo::ring;
  using mixed = then<contract::all_reduce, ring::reduce_scatter, direct_one_shot::all_gather>;
  using even = then<contract::all_reduce, direct_one_shot::reduce_scatter, ring::all_gather>;
  CHECK(level_of<mixed>() == run_to_run);
  CHECK(level_of<even>() == any_transport);
  CHECK(verify<even>(5).level == any_transport);
  using two_levels = algo::hierarchical<direct_one_shot, algo::recursive_doubling>;
  CHECK(level_of<two_levels::all_reduce>() == any_transport);
  CHECK(verify<two_levels::all_reduce>(shape(12, 4)).level == any_transport);
  CHECK(verify<two_levels::all_reduce>(shape(12, 4)).ok());
  using rings = algo::hierarchical<direct_one_shot, ring>;
  CHECK(level_of<rings::all_reduce>() == run_to_run);
  CHECK(verify<rings::reduce_scatter>(shape(12, 4)).ok());
}
