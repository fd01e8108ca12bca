// SPDX-License-Identifier: Apache-2.0
// ordered: takes the order of combining from nobody but itself, and all else from the callable: what is
// divided at the end, prepared at the beginning and held in another type on the way.
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/op/premultiplied.hpp"
#include "require.hpp"
#include "watched.hpp"

using communicator = collx::communicator<collx::transport::threads>;

TEST_CASE("ordered: has the members that its callable has, and no others") {
  using collx::ordered;
  using average = ordered<collx::avg_t>;
  static_assert(collx::finishes<average, float> && !collx::prepares<average, float>);
  static_assert(!collx::finishes<ordered<collx::sum_t>, float>);
  using scaled = ordered<collx::premultiplied_sum_t<double>>;
  static_assert(collx::prepares<scaled, float> && !collx::finishes<scaled, float>);
  static_assert(!collx::reduction<ordered<collx::premultiplied_sum_t<float*>>, float>);
  using inside = decltype(ordered(collx::accumulate_in<double>(collx::avg)));
  using outside = decltype(collx::accumulate_in<double>(ordered(collx::avg)));
  static_assert(std::is_same_v<collx::accumulate_t<inside, float>, double>);
  static_assert(std::is_same_v<collx::accumulate_t<outside, float>, double>);
  static_assert(!collx::is_commutative<inside>() && !collx::is_commutative<outside>());
  static_assert(std::is_same_v<collx::accumulate_t<average, float>, float>);
  static_assert(std::is_same_v<collx::accumulate_t<average, collx::bfloat16>, float>);
  static_assert(std::is_same_v<collx::accumulate_t<ordered<int (*)(int, int)>, int>, int>);
  CHECK(average(collx::avg).finish(9.0, 2) == 4.5);
  CHECK(scaled(collx::premultiplied_sum(0.5)).prepare(3.0f) == 1.5f);
}

TEST_CASE("ordered: an average is divided, a factor multiplies, and a wider type holds the sum") {
  for (std::size_t const count : {1u, 1000u, 100'000u})
    watched::on_threads(3, [&](communicator& comm) {
      std::vector<float> const mine(count, static_cast<float>(3 * comm.rank() + 1));
      std::vector<float> out(count);
      collx::all_reduce(comm, mine, out, collx::ordered(collx::avg));
      require(out == std::vector<float>(count, 4.0f), "the average of 1, 4 and 7");
      auto const factor = static_cast<float>(comm.rank() + 1) / 2;
      collx::all_reduce(comm, mine, out, collx::ordered(collx::premultiplied_sum(factor)));
      require(out == std::vector<float>(count, 0.5f + 4.0f + 10.5f), "half of 1, 4 and one and a half 7");
      // 2^24 + 1 is no float: added one by one in float, the ones are lost.
      std::vector<float> const terms(count, comm.rank() == 0 ? 16777216.0f : 1.0f);
      auto const in_double = collx::accumulate_in<double>(collx::sum);
      collx::all_reduce<collx::algo::direct_one_shot>(comm, terms, out, collx::ordered(in_double));
      require(out == std::vector<float>(count, 16777218.0f), "in double");
    });
}
