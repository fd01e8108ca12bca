// SPDX-License-Identifier: Apache-2.0
// The cost models against numbers worked out by hand.
#include "collx/tune/cost_model.hpp"

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/recursive_doubling.hpp"
#include "collx/algo/ring.hpp"

using collx::tune::alpha_beta_gamma;
using collx::tune::factors;
using collx::tune::factors_of;
using collx::tune::log_gp;

namespace {

void check_factors(factors const& f, double rounds, double messages, double sent, double combined) {
  CHECK(f.rounds == doctest::Approx(rounds));
  CHECK(f.messages == doctest::Approx(messages));
  CHECK(f.sent_blocks == doctest::Approx(sent));
  CHECK(f.combined_blocks == doctest::Approx(combined));
}

constexpr factors known{.rounds = 3, .messages = 5, .sent_blocks = 1.5, .combined_blocks = 0.5};

}  // namespace

TEST_CASE("alpha-beta-gamma: rounds, bytes sent and bytes combined each cost their part") {
  constexpr alpha_beta_gamma model{.alpha_us = 2, .beta_us_per_byte = 0.01, .gamma_us_per_byte = 0.1};
  static_assert(model(known, 0) == 6);
  CHECK(model(known, 1000) == doctest::Approx(6 + 15 + 50));
}

TEST_CASE("LogGP: messages beyond the longest chain cost a gap each") {
  constexpr log_gp model{.round_us = 2, .gap_us = 0.25, .gap_us_per_byte = 0.01, .gamma_us_per_byte = 0.1};
  static_assert(model(known, 0) == 6.5);
  CHECK(model(known, 1000) == doctest::Approx(6.5 + 15 + 50));
  constexpr factors waits{.rounds = 4, .messages = 1, .sent_blocks = 0, .combined_blocks = 0};
  static_assert(model(waits, 8) == 8);
}

TEST_CASE("what a schedule costs is counted in blocks of its contract") {
  using namespace collx::algo;
  // Every rank sends 2 (n - 1) of n chunks, and combines n - 1 of them.
  check_factors(factors_of<ring::all_reduce>(4), 6, 6, 1.5, 0.75);
  // Every rank sends its vector to 3 others and combines 3.
  check_factors(factors_of<direct_one_shot::all_reduce>(4), 1, 3, 3, 3);
  check_factors(factors_of<direct_two_shot::all_reduce>(4), 2, 6, 1.5, 0.75);
  check_factors(factors_of<recursive_doubling::all_reduce>(8), 3, 3, 3, 3);
  // The block is what one rank gives or gets.
  check_factors(factors_of<ring::all_gather>(4), 3, 3, 3, 0);
  check_factors(factors_of<ring::reduce_scatter>(4), 3, 3, 3, 3);
  check_factors(factors_of<direct_one_shot::all_to_all>(4), 1, 3, 3, 0);
  // The last rank has combined all of them.
  check_factors(factors_of<direct_one_shot::scan>(4), 1, 3, 3, 3);
}

TEST_CASE("counts are known when compiling") {
  constexpr factors f = factors_of<collx::algo::ring::all_reduce>(4);
  static_assert(collx::tune::message_model(f, 1 << 20) > collx::tune::message_model(f, 8));
}

TEST_CASE("the default model of messages prefers few rounds for small vectors and few bytes for large ones") {
  auto const us = []<class S>(std::size_t bytes) {
    return collx::tune::message_model(factors_of<S>(16), bytes);
  };
  using namespace collx::algo;
  CHECK(us.operator()<recursive_doubling::all_reduce>(8) < us.operator()<ring::all_reduce>(8));
  CHECK(us.operator()<recursive_doubling::all_reduce>(8 << 20) > us.operator()<ring::all_reduce>(8 << 20));
}
