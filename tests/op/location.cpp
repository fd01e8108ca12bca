// SPDX-License-Identifier: Apache-2.0
// The smallest and the largest value with its place: ties, NaN, and through collectives.
#include "collx/op/location.hpp"

#include <limits>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/op/reduction.hpp"
#include "sample.hpp"
#include "watched.hpp"

namespace {

using pair = collx::value_index<float>;

}  // namespace

TEST_CASE("of equal values the lower index wins, whatever the order") {
  CHECK(collx::min_location(pair{1, 5}, pair{2, 3}) == pair{1, 5});
  CHECK(collx::min_location(pair{2, 3}, pair{1, 5}) == pair{1, 5});
  CHECK(collx::min_location(pair{1, 5}, pair{1, 3}) == pair{1, 3});
  CHECK(collx::min_location(pair{1, 3}, pair{1, 5}) == pair{1, 3});
  CHECK(collx::max_location(pair{1, 5}, pair{2, 3}) == pair{2, 3});
  CHECK(collx::max_location(pair{2, 5}, pair{2, 3}) == pair{2, 3});
  CHECK(collx::max_location(pair{2, 3}, pair{2, 5}) == pair{2, 3});
  CHECK(collx::max_location(pair{-0.0f, 7}, pair{0.0f, 8}).index == 7);
}

TEST_CASE("a NaN is kept when it comes first and dropped when it comes second") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(collx::min_location(pair{nan, 1}, pair{2, 0}).index == 1);
  CHECK(collx::min_location(pair{2, 1}, pair{nan, 0}).index == 1);
  CHECK(collx::max_location(pair{nan, 1}, pair{2, 0}).index == 1);
}

TEST_CASE("which elements have a location") {
  static_assert(collx::reduction<collx::min_location_t, pair>);
  static_assert(collx::reduction<collx::max_location_t, collx::value_index<std::int8_t, std::int32_t>>);
  static_assert(!collx::reduction<collx::min_location_t, float>);
  static_assert(sizeof(collx::value_index<float, std::int32_t>) == 8);
  CHECK(true);
}

TEST_CASE("every algorithm finds the least value of all ranks and its lowest place") {
  for (collx::rank_t const size : {1, 2, 3, 5, 8})
    watched::on_threads(size, [](collx::communicator<collx::transport::threads>& comm) {
      using element = collx::value_index<double, std::int32_t>;
      auto const value = [](collx::rank_t r, std::size_t i) {
        return static_cast<double>((static_cast<std::size_t>(r) * 7 + i * 5) % 3);
      };
      std::vector<element> mine(1000), least(1000), greatest(1000);
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = {value(comm.rank(), i), comm.rank()};
      auto const check = [&]<class Algorithm, class Contract, class Schedule>() {
        collx::all_reduce<Algorithm>(comm, mine, least, collx::min_location);
        collx::all_reduce<Algorithm>(comm, mine, greatest, collx::max_location);
        for (std::size_t i = 0; i < mine.size(); ++i) {
          element low{value(0, i), 0}, high = low;
          for (collx::rank_t r = 1; r < comm.size(); ++r) {
            if (value(r, i) < low.value) low = {value(r, i), r};
            if (value(r, i) > high.value) high = {value(r, i), r};
          }
          if (least[i] != low || greatest[i] != high) throw std::runtime_error(Algorithm::name);
        }
      };
      collx::for_each_schedule<sample::algorithms, collx::type_list<collx::contract::all_reduce>>(check);
    });
}
