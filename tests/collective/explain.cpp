// SPDX-License-Identifier: Apache-2.0
// What tune::explain says of calls that require a level of reproducibility: the algorithm that they take.
#include "collx/collective/explain.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/pairwise.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all_v.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

namespace algo = collx::algo;
namespace contract = collx::contract;
namespace tune = collx::tune;
using collx::reproducibility;
using collx::reproducible;
using world_type = collx::communicator<collx::transport::threads>;

// What a call takes is what it is told to be by persistent::, which names it.
template <reproducibility Level, class T>
void require_explained(world_type& world, std::size_t count, std::string const& reason) {
  std::vector<T> values(count);
  auto const taken = collx::persistent::all_reduce<reproducible<Level>>(world, values);
  auto const why = tune::explain<contract::all_reduce, reproducible<Level>, T>(world, count * sizeof(T));
  std::string const named = taken.algorithm();
  require(why.algorithm == named && why.from == tune::source::built_in_table, why.text());
  require(std::string(why.text()).find("memory: " + named + ", by ") != std::string::npos, why.text());
  require(std::string(why.text()).find(reason) != std::string::npos, why.text());
}

struct short_ones_direct
    : tune::fixed_table<tune::fixed_rule<contract::all_to_all_v, algo::direct_one_shot, {.bytes_max = 4096}>,
                        tune::fixed_rule<contract::all_to_all_v, algo::pairwise>> {};

}  // namespace

TEST_CASE("explain: of counts that only two ranks share, what the call takes, however much it moves") {
  watched::on_threads(3, [](world_type& world) {
    constexpr std::size_t count = 100'000;
    std::vector<std::size_t> const counts(3, count);
    std::vector<int> in(3 * count), out(in.size());
    auto const taken = collx::persistent::all_to_all_v<short_ones_direct>(
        world, collx::blocks<int const>(in, counts), collx::blocks<int>(out, counts));
    auto const why =
        tune::explain<contract::all_to_all_v, short_ones_direct, int>(world, count * sizeof(int));
    require(why.algorithm == std::string(taken.algorithm()), why.text());
  });
}

TEST_CASE("explain: of a call that requires a level, the algorithm that it takes, and why") {
  watched::on_threads(3, [](world_type& world) {
    for (std::size_t const count : {std::size_t{2}, std::size_t{1} << 20}) {
      require_explained<reproducibility::run_to_run, float>(
          world, count, "by the rows of the built-in table whose algorithms are reproducible: run_to_run");
      require_explained<reproducibility::any_transport, float>(
          world, count,
          "by the rows of the built-in table of all transports whose algorithms are reproducible: "
          "any_transport");
      require_explained<reproducibility::any_size, int>(
          world, count, "of the built-in table; the operator is exact on these elements, so every algorithm");
    }
    auto const small =
        tune::explain<contract::all_reduce, reproducible<reproducibility::any_transport>>(world, 8);
    auto const large =
        tune::explain<contract::all_reduce, reproducible<reproducibility::any_transport>>(world, 1 << 22);
    require(std::string(small.algorithm) == "direct_one_shot", small.text());
    require(std::string(large.algorithm) == "direct_two_shot", large.text());
    auto const moved = tune::explain<contract::all_gather, reproducible<reproducibility::any_size>>(world, 8);
    auto const as_ever = tune::explain<contract::all_gather, collx::automatic>(world, 8);
    require(std::string(moved.algorithm) == as_ever.algorithm && moved.row == as_ever.row, moved.text());
    require(std::string(moved.text()).find("; nothing is combined") != std::string::npos, moved.text());
  });
}
