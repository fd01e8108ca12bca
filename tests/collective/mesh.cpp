// SPDX-License-Identifier: Apache-2.0
// Meshes: who is with whom, that collectives along axes do not disturb each other, and what they cost.
#include "collx/mesh.hpp"

#include <atomic>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/collx.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::transport::threads;
using communicator = collx::communicator<threads>;

struct tp {};
struct cp {};
struct pp {};
struct dp {};

template <class Axis>
std::vector<rank_t> members(auto& grid) {
  auto& line = grid.template along<Axis>();
  std::vector<rank_t> all;
  for (rank_t r = 0; r < line.size(); ++r) all.push_back(line.world_rank(r));
  return all;
}

// Every collective along one axis, against what its members must get.
template <class Axis>
void check_axis(auto& grid) {
  auto& line = grid.template along<Axis>();
  rank_t const n = line.size();
  auto const ranks = members<Axis>(grid);
  int sum = 0;
  for (rank_t const r : ranks) sum += r;
  for (std::size_t const count : {std::size_t{1}, std::size_t{5000}}) {
    std::vector<int> v(count, grid.world().rank()), all(count * static_cast<std::size_t>(n)),
        all_out(all.size());
    auto reduced = v;
    collx::all_reduce(line, reduced);
    require(reduced.front() == sum && reduced.back() == sum, "all_reduce");
    reduced = v;
    collx::all_reduce<collx::algo::ring>(line, reduced);
    require(reduced.front() == sum && reduced.back() == sum, "ring");
    std::vector<double> averaged(count, grid.world().rank());
    collx::all_reduce(line, averaged, collx::avg);
    require(averaged.back() == double(sum) / n, "avg divides by the ranks on the axis");
    collx::all_gather(line, v, all);
    for (rank_t r = 0; r < n; ++r)
      require(all[static_cast<std::size_t>(r) * count] == ranks[static_cast<std::size_t>(r)], "all_gather");
    for (rank_t r = 0; r < n; ++r) all[static_cast<std::size_t>(r) * count] = grid.world().rank() * 100 + r;
    collx::all_to_all(line, all, all_out);
    for (rank_t r = 0; r < n; ++r)
      require(all_out[static_cast<std::size_t>(r) * count] ==
                  ranks[static_cast<std::size_t>(r)] * 100 + line.rank(),
              "all_to_all");
    for (rank_t root = 0; root < n; ++root) {
      std::vector<int> sent(count, line.rank() == root ? 7 + root : 0);
      collx::broadcast<collx::algo::binomial_tree>(line, sent, root);
      require(sent.back() == 7 + root, "broadcast");
    }
  }
}

}  // namespace

TEST_CASE("mesh: the groups of 16 ranks in 2 x 2 x 2 x 2, innermost first") {
  watched::on_threads(16, [](communicator& world) {
    collx::mesh<threads, tp, cp, pp, dp> grid(world, {2, 2, 2, 2});
    if (world.rank() == 0) {
      require(members<tp>(grid) == std::vector<rank_t>{0, 1}, "tp");
      require(members<cp>(grid) == std::vector<rank_t>{0, 2}, "cp");
      require(members<pp>(grid) == std::vector<rank_t>{0, 4}, "pp");
      require(members<dp>(grid) == std::vector<rank_t>{0, 8}, "dp");
    }
    if (world.rank() == 13) {  // 1 + 4 + 8
      require(members<tp>(grid) == std::vector<rank_t>{12, 13}, "tp of 13");
      require(members<cp>(grid) == std::vector<rank_t>{13, 15}, "cp of 13");
      require(members<pp>(grid) == std::vector<rank_t>{9, 13}, "pp of 13");
      require(members<dp>(grid) == std::vector<rank_t>{5, 13}, "dp of 13");
      require(grid.coordinate<tp>() == 1 && grid.coordinate<cp>() == 0 && grid.extent<dp>() == 2, "places");
    }
    check_axis<tp>(grid);
    check_axis<cp>(grid);
    check_axis<pp>(grid);
    check_axis<dp>(grid);
  });
}

TEST_CASE("mesh: unequal axes, and axes of one rank, on threads and processes") {
  auto const check = [](auto& world) {
    using transport = typename std::remove_reference_t<decltype(world)>::transport_type;
    collx::mesh<transport, tp, cp, dp> grid(world, {3, 1, 2});
    check_axis<dp>(grid);
    check_axis<tp>(grid);
    check_axis<cp>(grid);
    auto copy = world.split(world.rank() % 2, 0);  // an ordinary communicator beside it
    std::vector<int> one(1, 1);
    collx::all_reduce(copy, one);
    require(one[0] == 3, "split");
    auto half = grid.template along<tp>().split(grid.template along<tp>().rank() / 2, 0);
    collx::all_reduce(half, one);
    require(one[0] == 3 * half.size(), "split of an axis");
  };
  watched::on_threads(6, check);
  for (int const code : watched::on_processes(6, check)) CHECK(code == 0);
}

TEST_CASE("mesh: communicators along axes take no memory, and others a bounded amount") {
  std::size_t bytes = 0;
  watched::on_threads(8, [&](communicator& world) {
    if (world.rank() == 0) bytes = world.reserved_bytes();
  });
  MESSAGE("bytes reserved per rank for a communicator of 8 ranks: " << bytes);
  CHECK(bytes <= 4 * 1024 * 1024);
  auto const check = [](auto& world) {
    using transport = typename std::remove_reference_t<decltype(world)>::transport_type;
    collx::mesh<transport, tp, dp> grid(world, {4, 2});
    require(world.reserved_bytes() > 0, "the world has some");
    require(world.reserved_bytes() <= 4 * 1024 * 1024, "the world has too much");
    require(
        grid.template along<tp>().reserved_bytes() == 0 && grid.template along<dp>().reserved_bytes() == 0,
        "an axis has none");
    auto split = world.split(0, world.rank());
    require(split.reserved_bytes() > 0, "a split one has its own");
    require(split.reserved_bytes() <= 4 * 1024 * 1024, "a split one has too much");
  };
  watched::on_threads(8, check);
  for (int const code : watched::on_processes(8, check)) CHECK(code == 0);
}

TEST_CASE("mesh: requests on several axes in flight at once, more on some groups than on others") {
  watched::on_threads(8, [](communicator& world) {
    auto grid = collx::make_mesh<tp, dp>(world, {4, 2});
    std::vector<int> a(20'000, 1), b(3, 1), c(100, 1);
    if (grid.coordinate<dp>() == 0) {  // only half of the groups along tp
      auto extra = collx::start::all_reduce(grid.along<tp>(), c);
      extra.wait();
    }
    auto first = collx::start::all_reduce(grid.along<tp>(), a);
    auto second = collx::start::all_reduce<collx::automatic, collx::priority::urgent>(grid.along<dp>(), b);
    auto third = collx::start::all_reduce(world, c, collx::max);
    second.wait();
    third.wait();
    first.wait();
    require(a.back() == 4 && b.back() == 2 && c.back() == 4, "a wrong result");
  });
}

TEST_CASE("mesh: calls along an axis are compared among its ranks") {
  std::atomic<int> named{0};
  watched::on_threads(4, [&](communicator& world) {
    world.checking(collx::checking_level::communication);
    collx::mesh<threads, tp, dp> grid(world, {2, 2});
    std::vector<int> v(static_cast<std::size_t>(grid.coordinate<dp>() == 0 ? 5 : 6));
    // Equal along tp. Whoever is through may have ended the whole world before this rank is.
    collx::status const equal = collx::try_all_reduce(grid.along<tp>(), v);
    require(equal == collx::status::ok || equal == collx::status::aborted, "equal counts are refused");
    collx::status const outcome = collx::try_all_reduce(grid.along<dp>(), v);
    require(outcome == collx::status::mismatch || outcome == collx::status::aborted, "not noticed");
    if (outcome != collx::status::mismatch) return;
    require(std::string(world.failure().differs_in) == "count", "named as something else");
    named.fetch_add(1, std::memory_order_relaxed);  // read after the ranks' threads are joined
  });
  CHECK(named.load(std::memory_order_relaxed) > 0);
}

TEST_CASE("mesh: extents that do not fit, and axes without this rank, are refused") {
  watched::on_threads(6, [](communicator& world) {
    auto const refused = [&](auto const& make) {
      try {
        make();
      } catch (collx::error const& failure) {
        return failure.code() == collx::status::bad_argument;
      }
      return false;
    };
    require(refused([&] { collx::mesh<threads, tp, dp>(world, {2, 2}); }), "2 x 2 of 6");
    require(refused([&] { collx::mesh<threads, tp, dp>(world, {-2, -3}); }), "negative");
    require(refused([&] { collx::mesh<threads, tp, dp>(world, {0, 6}); }), "zero");
    std::string said;
    try {
      (void)collx::make_mesh<tp, cp, dp>(world, {3, -2147483647 - 1, 2147483647});
    } catch (collx::error const& failure) {
      said = failure.what();
    }
    require(said.find(" of 6: the extents, 3 x -2147483648 x 2147483647, must be") != said.npos, said);
    require(refused([&] { (void)world.along({0, 2, 4}); }), "too far");
    require(refused([&] { (void)world.along({world.rank() == 0 ? 1 : 0, 6, 1}); }), "without this rank");
  });
}
