// SPDX-License-Identifier: Apache-2.0
// The chain of as many chunks as its law wants: by bytes, ranks, model and fragments; and calls with it.
#include "collx/tune/best_chain.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collective/broadcast.hpp"
#include "collx/collective/explain.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/scan.hpp"
#include "watched.hpp"

namespace tune = collx::tune;
namespace contract = collx::contract;
using collx::best_chain;
using collx::rank_t;
using world_type = collx::communicator<collx::transport::threads>;

namespace {

constexpr tune::log_gp model{.round_us = 1, .gap_us_per_byte = 1e-4};

constexpr std::int32_t wanted(std::size_t bytes, rank_t ranks, std::size_t staging = tune::any_bytes) {
  return tune::chunks_of_fragment({.bytes = bytes, .ranks = ranks, .staging_bytes = staging}, model);
}

}  // namespace

TEST_CASE("best_chain: as many chunks as the law wants, or a fragment's share of them") {
  static_assert(wanted(100'000, 16) == 12);  // sqrt(14 * 1e5 * 1e-4 / 1) = 11.8
  static_assert(wanted(1'000'000, 16) == 37);
  static_assert(wanted(1'000'000, 16, 1'000'000) == 37 / 3);  // fragments of half a staging memory: three
  static_assert(wanted(1'000'000, 2) == 1);                   // one hop: nothing overlaps
  static_assert(wanted(8, 16) == 1);
  static_assert(wanted(100'000'000, 16, 4096) == 1);  // there are more fragments than chunks wanted
  static_assert(tune::chunks_of_fragment({.bytes = 1000, .ranks = 16}, {.round_us = 1}) == 1);
}

TEST_CASE("best_chain: of the counts there are, the nearest by ratio") {
  constexpr std::int32_t counts[] = {1, 4, 16};
  static_assert(tune::nearest_count(counts, 1) == 0);
  static_assert(tune::nearest_count(counts, 2) == 1);  // as far from 1 as from 4
  static_assert(tune::nearest_count(counts, 7) == 1);
  static_assert(tune::nearest_count(counts, 8) == 2);
  static_assert(tune::nearest_count(counts, 1000) == 2);
}

TEST_CASE("best_chain: calls take the chain that explain names, and a table's model decides") {
  watched::on_threads(5, [](world_type& world) {
    tune::settings said;
    said.table(tune::parse(R"({"models": [{"round_us": 1, "gap_us_per_byte": 1e-4}]})", "mine.json"));
    world.tuning(&said);
    auto const of = [&](std::size_t bytes) {
      return tune::explain<contract::broadcast, best_chain>(world, bytes);
    };
    if (std::string(of(8).algorithm) != "pipelined_chain_1")
      throw collx::error(collx::status::aborted, of(8).text());
    // sqrt(3 * 2e5 * 1e-4) = 7.7
    if (std::string(of(200'000).algorithm) != "pipelined_chain_8")
      throw collx::error(collx::status::aborted, of(200'000).text());
    std::string const why = of(200'000).text();
    if (why.find("a chain of 8 chunks per fragment, by its law, which wants 8") == std::string::npos)
      throw collx::error(collx::status::aborted, why.c_str());

    std::vector<int> values(50'000, world.rank() == 3 ? 7 : 0), sum(values.size()), prefix(values.size());
    collx::broadcast<best_chain>(world, values, 3);
    collx::reduce<best_chain>(world, values, sum, collx::sum, 4);
    collx::scan<tune::best_chain_of<2, 64>>(world, values, prefix);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != 7 || prefix[i] != 7 * (world.rank() + 1) || (world.rank() == 4 && sum[i] != 35))
        throw collx::error(collx::status::aborted, "a wrong result");
    world.tuning(nullptr);
  });
}
