// SPDX-License-Identifier: Apache-2.0
// The choice where ranks share hosts, the library's own and `selected`: both look at how they lie, and
// two-level algorithms are among what they, a variable or code may take. The hosts are pretended
// (transport/pretended_hosts.hpp).
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/explain.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "collx/collective/split.hpp"
#include "transport/pretended_hosts.hpp"

namespace tune = collx::tune;
namespace contract = collx::contract;
using collx::rank_t;
using collx::selected;
using world_type = collx::communicator<pretended::shm_and_tcp>;

namespace {

// A failure ends the process with another code than 0, after it has said what it saw.
void require(std::string const& text, std::string const& words, bool holds = true) {
  if ((text.find(words) != std::string::npos) == holds) return;
  std::fprintf(stderr, "says '%s', %s '%s'\n", text.c_str(), holds ? "and not" : "which holds",
               words.c_str());
  std::_Exit(3);
}

// Two hosts of two ranks.
template <class RankMain>
void on_two_hosts(RankMain const& rank_main) {
  for (int const code : pretended::on_hosts(
           {1, 1, 2, 2},
           [&](world_type& world) {
             world.ranks_per_group(2);
             rank_main(world);
           },
           collx::transport::tcp_settings{}))
    CHECK(code == 0);
}

// The sum of 1 .. 4 everywhere, with the algorithm that is chosen.
template <class Algorithm = selected>
void check_sum(world_type& world, std::size_t count) {
  std::vector<float> values(count, static_cast<float>(world.rank() + 1));
  collx::all_reduce<Algorithm>(world, values);
  for (float const each : values)
    if (each != 10) std::_Exit(4);
}

// Of all others that two levels are chosen for.
void check_others(world_type& world, std::size_t count) {
  auto const ranks = static_cast<std::size_t>(world.size());
  std::vector<int> mine(count, world.rank()), all(ranks * count), others(ranks * count);
  collx::all_gather(world, mine, all);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != static_cast<int>(i / count)) std::_Exit(5);
  collx::reduce_scatter(world, all, mine, collx::sum);
  for (int const each : mine)
    if (each != world.rank() * world.size()) std::_Exit(6);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = world.rank() * world.size() + static_cast<int>(i / count);
  collx::all_to_all(world, all, others);
  for (std::size_t i = 0; i < others.size(); ++i)
    if (others[i] != static_cast<int>(i / count) * world.size() + world.rank()) std::_Exit(7);
  collx::barrier(world);
}

template <class Contract>
std::string chosen(world_type& world, std::size_t bytes) {
  return tune::explain<Contract>(world, bytes).text();
}

}  // namespace

TEST_CASE("where ranks share hosts, two-level algorithms are chosen, and do it") {
  on_two_hosts([](world_type& world) {
    std::string const why = tune::explain<contract::all_reduce, selected>(world, 1 << 20).text();
    require(why, "all_reduce of 1048576 bytes on 4 ranks in groups of 2 over composite");
    require(why, "memory: hierarchical<direct_one_shot, ");
    require(why, "by the cost model");
    check_sum(world, std::size_t{1} << 18);
    require(tune::explain<contract::all_gather, selected>(world, 4096).text(), "memory: hierarchical<");
    std::vector<int> mine(1024, world.rank()), all(4096);
    collx::all_gather<selected>(world, mine, all);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] != static_cast<int>(i / 1024)) std::_Exit(5);
    world.ranks_per_group(1);  // no structure: none of it
    require(tune::explain<contract::all_reduce, selected>(world, 1 << 20).text(), "memory: hierarchical",
            false);
    check_sum(world, 1000);
  });
}

TEST_CASE("ranks that are all on one host are priced by the near transport") {
  on_two_hosts([](world_type& world) {
    auto host = world.split(world.rank() / 2, 0), pair = world.split(world.rank() % 2, 0);
    // Two ranks exchange halves and combine one: 2 * 0.17 + 2^20 (0.00014 + 0.000004 / 2) us in memory, and
    // 2 * 20 + 2^20 (0.00035 + 0.00006 / 2) us over TCP.
    require(tune::explain<contract::all_reduce, selected>(host, 1 << 20).text(), "direct_two_shot 149 us");
    require(tune::explain<contract::all_reduce, selected>(pair, 1 << 20).text(), "direct_two_shot 438 us");
    std::vector<int> values(1000, 1);
    collx::all_reduce<selected>(host, values);
    if (values[999] != 2) std::_Exit(4);
  });
}

TEST_CASE("a variable and code may name two-level algorithms, whose names have commas") {
  on_two_hosts([](world_type& world) {
    setenv("COLLX_ALGORITHM", "all_reduce=hierarchical<direct_one_shot, ring>,broadcast=chain", 1);
    require(tune::explain<contract::all_reduce, selected>(world, 8).text(),
            "hierarchical<direct_one_shot, ring>, by environment variable COLLX_ALGORITHM");
    require(tune::explain<contract::broadcast, selected>(world, 8).text(), "chain, by environment variable");
    check_sum(world, 1000);
    tune::settings said;
    said.use("all_reduce", "hierarchical<direct_one_shot, direct_one_shot>");
    world.tuning(&said);
    require(tune::explain<contract::all_reduce, selected>(world, 8).text(), "direct_one_shot>, by the code");
    check_sum(world, 1000);
    said.use("all_reduce", "hierarchical<ring, ring>");
    require(tune::explain<contract::all_reduce, selected>(world, 8).text(),
            "is no algorithm of this collective here; say one of: direct_one_shot direct_two_shot "
            "bidirectional_ring");
    world.tuning(nullptr);
  });
}

TEST_CASE("where ranks share hosts, the library's own choice has two levels, and is right") {
  on_two_hosts([](world_type& world) {
    bool const sharing = world.engine().endpoint().is_sharing();
    require(chosen<contract::all_reduce>(world, 8),
            sharing ? "memory: binomial_tree, by row 1 of"
                    : "memory: hierarchical<direct_one_shot, direct_one_shot>, by row 2 of");
    require(chosen<contract::all_reduce>(world, 1 << 17),
            "hierarchical<direct_one_shot, recursive_doubling>");
    require(chosen<contract::all_reduce>(world, 1 << 23), "hierarchical<direct_one_shot, ring>");
    require(chosen<contract::all_gather>(world, 1 << 16), "hierarchical<direct_one_shot, direct_one_shot>");
    for (std::size_t const count : {1u, 3u, 1000u, 30'000u, 300'001u, 1'500'000u}) {
      check_sum<collx::automatic>(world, count);
      check_others(world, count);
    }
    world.ranks_per_group(1);
    require(chosen<contract::all_gather>(world, 1 << 16), "hierarchical", false);
    check_others(world, 1000);
  });
}

TEST_CASE("ranks that are all on one host choose directly, and wait as over memory alone") {
  on_two_hosts([](world_type& world) {
    auto host = world.split(world.rank() / 2, 0);
    require(chosen<contract::broadcast>(host, 1 << 20), "direct_one_shot, by row 1 of");
    require(chosen<contract::all_reduce>(host, 1 << 20), "direct_two_shot, by row 3 of");
    check_others(host, 1000);
    bool const sharing = world.engine().endpoint().is_sharing();
    auto const spins = [](world_type& those) { return those.engine().wakefulness().spins; };
    if (spins(world) != (sharing ? 0 : collx::exec::looks_by_system_call)) std::_Exit(8);
    if (spins(host) != (sharing ? 0 : collx::exec::looks_at_memory)) std::_Exit(9);
  });
}
