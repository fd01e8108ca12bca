// SPDX-License-Identifier: Apache-2.0
// One rank of hosts_test.sh. `collectives`: calls them all and compares with what must come out.
// `until_it_fails`: goes round and round, and prints how that ended. `words`: sends the words of its third
// argument to all.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include "collx/algo/binomial_tree.hpp"
#include "collx/algo/direct.hpp"
#include "collx/algo/hierarchical.hpp"
#include "collx/algo/pairwise.hpp"
#include "collx/algo/ring.hpp"
#include "collx/bootstrap/composite.hpp"
#include "collx/collx.hpp"
#include "watched.hpp"
#if defined(COLLX_TEST_UCX)
#include "collx/bootstrap/ucx.hpp"
#endif

namespace {

using collx::rank_t;
using tcp = collx::transport::tcp;
using shm_and_tcp = collx::transport::composite<collx::transport::shm, tcp>;

void require(bool holds, char const* what, std::size_t count) {
  if (!holds) throw std::runtime_error(std::string(what) + " of " + std::to_string(count) + " is wrong");
}

// Element i of rank r's contribution.
std::int64_t given(rank_t r, std::size_t i) {
  return std::int64_t{r} * 1000 + static_cast<std::int64_t>(i % 997);
}

std::vector<std::int64_t> contribution(rank_t r, std::size_t count) {
  std::vector<std::int64_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = given(r, i);
  return values;
}

template <class World>
struct walk {
  World& world;
  std::size_t count;
  rank_t n = world.size(), me = world.rank();
  std::size_t blocks = static_cast<std::size_t>(n);
  std::vector<std::int64_t> mine = contribution(me, count), wide = contribution(me, count*blocks);
  std::vector<std::int64_t> out = std::vector<std::int64_t>(count);
  std::vector<std::int64_t> all = std::vector<std::int64_t>(count * blocks);

  [[nodiscard]] std::int64_t total(std::size_t i) const { return total_of(n, i); }
  [[nodiscard]] std::int64_t total_of(rank_t ranks, std::size_t i) const {
    std::int64_t sum = 0;
    for (rank_t r = 0; r < ranks; ++r) sum += given(r, i);
    return sum;
  }
  // `all` has everybody's contribution; `out`, what `root` has for this rank.
  void check_rows(char const* what) const {
    for (std::size_t i = 0; i < all.size(); ++i)
      require(all[i] == given(static_cast<rank_t>(i / count), i % count), what, count);
  }
  // `all` has what everybody has for this rank.
  void check_columns(char const* what) const {
    std::size_t const own = static_cast<std::size_t>(me) * count;
    for (std::size_t i = 0; i < all.size(); ++i)
      require(all[i] == given(static_cast<rank_t>(i / count), own + i % count), what, count);
  }
  void check_row_of(rank_t root, char const* what) const {
    std::size_t const own = static_cast<std::size_t>(me) * count;
    for (std::size_t i = 0; i < count; ++i) require(out[i] == given(root, own + i), what, count);
  }
  void check_sums(char const* what, std::size_t offset = 0) const {
    for (std::size_t i = 0; i < count; ++i) require(out[i] == total(offset + i), what, count);
  }

  template <class Algorithm>
  void sums(char const* what) {
    out.assign(count, -1);
    collx::all_reduce<Algorithm>(world, std::span(std::as_const(mine)), std::span(out));
    check_sums(what);
  }

  void everything() {
    out.assign(count, -1);
    collx::all_reduce(world, std::span(std::as_const(mine)), std::span(out), collx::sum);
    check_sums("all_reduce");
    sums<collx::algo::ring>("all_reduce<ring>");
    if (world.ranks_per_group() > 1)
      sums<collx::algo::hierarchical<collx::algo::ring, collx::algo::ring>>("all_reduce<hierarchical>");
    collx::reduce_scatter(world, std::span(std::as_const(wide)), std::span(out));
    check_sums("reduce_scatter", static_cast<std::size_t>(me) * count);
    collx::all_gather(world, std::span(std::as_const(mine)), std::span(all));
    check_rows("all_gather");
    collx::all_to_all(world, std::span(std::as_const(wide)), std::span(all));
    check_columns("all_to_all");
    rank_t const root = n - 1;
    out = me == root ? mine : std::vector<std::int64_t>(count, -1);
    collx::broadcast(world, std::span(out), root);
    for (std::size_t i = 0; i < count; ++i) require(out[i] == given(root, i), "broadcast", count);
    out.assign(count, -1);
    collx::reduce(world, std::span(std::as_const(mine)), std::span(out), collx::sum, root);
    if (me == root) check_sums("reduce");
    rooted_and_scans(root / 2);
    between_neighbours();
    uneven(root / 2);
    if (world.ranks_per_group() > 1) on_two_levels(root);
    collx::barrier(world);
  }

  void rooted_and_scans(rank_t root) {
    std::fill(all.begin(), all.end(), -1);
    collx::gather(world, std::span(std::as_const(mine)), std::span(all), root);
    if (me == root) check_rows("gather");
    out.assign(count, -1);
    collx::scatter(world, std::span(std::as_const(wide)), std::span(out), root);
    check_row_of(root, "scatter");
    out.assign(count, -1);
    collx::scan(world, std::span(std::as_const(mine)), std::span(out));
    for (std::size_t i = 0; i < count; ++i) require(out[i] == total_of(me + 1, i), "scan", count);
    out.assign(count, 0);
    collx::exclusive_scan(world, std::span(std::as_const(mine)), std::span(out));
    if (me != 0)
      for (std::size_t i = 0; i < count; ++i) require(out[i] == total_of(me, i), "exclusive_scan", count);
  }

  // Everybody gives to the next rank, and to the one on the next host where there are several on each.
  void between_neighbours() {
    rank_t const near = 1, far = world.ranks_per_group();
    rank_t const sources[] = {(me - near + n) % n, (me - far + n) % n};
    rank_t const destinations[] = {(me + near) % n, (me + far) % n};
    collx::graph const edges(world, sources, destinations);
    std::vector<std::int64_t> got(2 * count, -1);
    collx::neighbour_all_gather(world, edges, std::span(std::as_const(mine)), std::span(got));
    for (std::size_t i = 0; i < got.size(); ++i)
      require(got[i] == given(sources[i / count], i % count), "neighbour_all_gather", count);
    got.assign(got.size(), -1);
    // Block 0 for the next rank, block 1 for the other.
    auto const given_away = std::span(std::as_const(wide)).first(2 * count);
    collx::neighbour_all_to_all(world, edges, given_away, std::span(got));
    for (std::size_t i = 0; i < got.size(); ++i)
      require(got[i] == given(sources[i / count], i), "neighbour_all_to_all", count);
  }

  // As many as rank r sends, or is sent: some have none.
  [[nodiscard]] std::size_t some(rank_t r) const { return count * static_cast<std::size_t>(r % 3) / 2; }

  void uneven(rank_t root) {
    std::vector<std::size_t> of_rank, of_mine(blocks, some(me)), begins;
    std::size_t end = 0;
    for (rank_t r = 0; r < n; ++r) {
      of_rank.push_back(some(r));
      begins.push_back(end);
      end += some(r);
    }
    std::span<std::int64_t const> const sent = std::span(std::as_const(wide)).first(some(me));
    std::vector<std::int64_t> got(end, -1), taken(some(me), -1);
    auto const check_all = [&](char const* what) {
      for (rank_t r = 0; r < n; ++r)
        for (std::size_t i = 0; i < some(r); ++i)
          require(got[begins[static_cast<std::size_t>(r)] + i] == given(r, i), what, count);
    };
    collx::all_gather_v(world, sent, collx::blocks<std::int64_t>{got, of_rank});
    check_all("all_gather_v");
    std::fill(got.begin(), got.end(), -1);
    if (me == root) collx::gather_v(world, sent, collx::blocks<std::int64_t>{got, of_rank}, root);
    else collx::gather_v(world, sent, collx::blocks<std::int64_t>{}, root);
    if (me == root) check_all("gather_v");
    collx::blocks<std::int64_t const> const everybodys{std::span(std::as_const(wide)).first(end), of_rank};
    auto const begin = begins[static_cast<std::size_t>(me)];
    if (me == root) collx::scatter_v(world, everybodys, std::span(taken), root);
    else collx::scatter_v(world, collx::blocks<std::int64_t const>{}, std::span(taken), root);
    for (std::size_t i = 0; i < taken.size(); ++i)
      require(taken[i] == given(root, begin + i), "scatter_v", count);
    collx::reduce_scatter_v(world, everybodys, std::span(taken));
    for (std::size_t i = 0; i < taken.size(); ++i)
      require(taken[i] == total(begin + i), "reduce_scatter_v", count);
    // Everybody sends rank r as many as r has: rank r's blocks all have its own length.
    std::vector<std::int64_t> columns(some(me) * blocks, -1);
    collx::all_to_all_v(world, everybodys, collx::blocks<std::int64_t>{columns, of_mine});
    for (std::size_t i = 0; i < columns.size(); ++i)
      require(columns[i] == given(static_cast<rank_t>(i / some(me)), begin + i % some(me)), "all_to_all_v",
              count);
  }

  void on_two_levels(rank_t root) {
    using two_levels = collx::algo::hierarchical<collx::algo::direct_one_shot, collx::algo::ring>;
    using trees = collx::algo::hierarchical<collx::algo::direct_one_shot, collx::algo::binomial_tree>;
    collx::reduce_scatter<two_levels>(world, std::span(std::as_const(wide)), std::span(out));
    check_sums("reduce_scatter<hierarchical>", static_cast<std::size_t>(me) * count);
    std::fill(all.begin(), all.end(), -1);
    collx::all_gather<two_levels>(world, std::span(std::as_const(mine)), std::span(all));
    check_rows("all_gather<hierarchical>");
    out = me == root ? mine : std::vector<std::int64_t>(count, -1);
    collx::broadcast<trees>(world, std::span(out), root);
    for (std::size_t i = 0; i < count; ++i)
      require(out[i] == given(root, i), "broadcast<hierarchical>", count);
    out.assign(count, -1);
    collx::reduce<trees>(world, std::span(std::as_const(mine)), std::span(out), collx::sum, root);
    if (me == root) check_sums("reduce<hierarchical>");
    using pairs = collx::algo::hierarchical<collx::algo::direct_one_shot, collx::algo::pairwise>;
    std::fill(all.begin(), all.end(), -1);
    collx::all_to_all<pairs>(world, std::span(std::as_const(wide)), std::span(all));
    check_columns("all_to_all<hierarchical>");
    std::fill(all.begin(), all.end(), -1);
    collx::gather<trees>(world, std::span(std::as_const(mine)), std::span(all), root);
    if (me == root) check_rows("gather<hierarchical>");
    out.assign(count, -1);
    collx::scatter<trees>(world, std::span(std::as_const(wide)), std::span(out), root);
    check_row_of(root, "scatter<hierarchical>");
  }
};

template <class World>
void collectives(World& world) {
  for (std::size_t const count : {1u, 3u, 1000u, 40'000u}) walk<World>{world, count}.everything();
  World half = world.split(world.rank() % 2, 0);
  for (std::size_t const count : {1u, 70'000u}) walk<World>{half, count}.everything();
  if (world.rank() == 0)
    std::printf("%d ranks, %d on each host: all right\n", world.size(), world.ranks_per_group());
}

template <class World>
void until_it_fails(World& world) {
  std::vector<float> values(50'000);
  try {
    for (long round = 0;; ++round) {
      collx::all_reduce<collx::algo::ring>(world, std::span(values));
      if (round == 20) std::printf("running, process %d\n", static_cast<int>(getpid())), std::fflush(stdout);
    }
  } catch (collx::error const& failure) {
    std::printf("failed: peer %d, %s\n", failure.report().peer, failure.what());
    std::fflush(stdout);
  }
}

// Whatever ranks send each other here is these words.
template <class World>
void send_words(World& world, std::string const& words) {
  std::string text;
  while (text.size() < 100'000) text += words;
  for (rank_t root = 0; root < world.size(); ++root) {
    std::string here = world.rank() == root ? text : std::string(text.size(), ' ');
    collx::broadcast(world, std::span(here.data(), here.size()), root);
    collx::all_reduce<collx::algo::ring>(world, std::span(here.data(), here.size()), collx::max);
    if (here != text) throw std::runtime_error("the words have changed");
  }
  if (world.rank() == 0) std::puts("words: all right");
}

template <class Transport>
void run(char const* what, char const* words) {
  auto world = collx::connect<Transport>();
  watched::rank_of_process const here(world);
  if (std::strcmp(what, "until_it_fails") == 0) until_it_fails(world);
  else if (std::strcmp(what, "words") == 0) send_words(world, words);
  else collectives(world);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw std::runtime_error("usage: host_rank TRANSPORT collectives|until_it_fails|words WORDS");
  char const* const words = argc > 3 ? argv[3] : "words ";
#if defined(COLLX_TEST_UCX)
  run<collx::transport::ucx>(argv[2], words);
#else
  if (std::strcmp(argv[1], "composite") == 0) run<shm_and_tcp>(argv[2], words);
  else run<tcp>(argv[2], words);
#endif
} catch (std::exception const& failure) {
  std::printf("error: %s\n", failure.what());
  return 1;
}
