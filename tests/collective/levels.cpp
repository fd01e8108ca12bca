// SPDX-License-Identifier: Apache-2.0
// The levels of reproducibility as a caller meets them: every algorithm of every collective that combines
// is held to the level that it states, and a required level to what it promises.
// sanitizers: no, compiles half a minute more, for code that types.cpp runs under them
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collective/rounded_sums.hpp"
#include "collx/algo/all.hpp"
#include "collx/bootstrap/local.hpp"
#include "sample.hpp"
#include "watched.hpp"

namespace {

using collx::level_of;
using collx::rank_t;
using collx::reproducibility;
using collx::reproducible;
using namespace rounded_sums;

using collx::transport::shm;
using collx::transport::threads;

// A sum on all transports.
struct sums {
  sum<forms::started, mailbox> on_mailbox;
  sum<forms::blocking, threads> on_threads;
  sum<forms::blocking, shm> on_shm;
};

template <class Algorithm, class Contract>
constexpr sums sums_of{sum_of<forms::started, mailbox, Algorithm, Contract>,
                       sum_of<forms::blocking, threads, Algorithm, Contract>,
                       sum_of<forms::blocking, shm, Algorithm, Contract>};

void require_same_everywhere(sums const& with, rank_t size, std::size_t block,
                             std::vector<bits> const& expected) {
  for (auto const settings : {few_fragments, many_fragments}) {
    CHECK((on_mailbox(with.on_mailbox, size, block, 4, settings) == expected));
    watched::on_threads(
        size,
        [&](collx::communicator<threads>& comm) { require_same(with.on_threads, comm, block, expected); },
        settings);
    auto const codes = watched::on_processes(
        size,
        [&](collx::communicator<shm>& comm) {
          require_same(with.on_shm, comm, block, expected);
          collx::barrier(comm);  // a rank that only sends must not end before all have joined
        },
        settings);
    for (int const code : codes) CHECK(code == 0);
  }
}

void check_level(sums const& with, reproducibility level, rank_t size) {
  auto const& [collective, algorithm, _] = with.on_mailbox;
  CAPTURE(algorithm);
  CAPTURE(collective->name);
  std::vector<bits> const expected = on_mailbox(with.on_mailbox, size, count, 1, many_fragments);
  bool const is_all_reduce = collective == &oracle::collective_of<collx::contract::all_reduce>;
  if (level >= reproducibility::same_on_every_rank && is_all_reduce)
    for (bits const& each : expected) CHECK((each == expected[0]));
  if (level >= reproducibility::run_to_run)
    for (std::uint64_t const seed : {2u, 3u})
      CHECK((on_mailbox(with.on_mailbox, size, count, seed, many_fragments) == expected));
  if (level >= reproducibility::any_transport) require_same_everywhere(with, size, count, expected);
}

}  // namespace

TEST_CASE("every algorithm of every collective that combines keeps the level that it states") {
  for (rank_t const size : {2, 3, 5, 8}) {
    CAPTURE(size);
    collx::for_each_schedule<sample::algorithms, combining>(
        [&]<class Algorithm, class Contract, class Schedule>() {
          if (collx::supports<Schedule>(size))
            check_level(sums_of<Algorithm, Contract>, collx::level_of<Schedule>(), size);
        });
  }
}

TEST_CASE("what a level promises holds for what the library chooses, small and large") {
  using anywhere = reproducible<reproducibility::any_transport>;
  for (rank_t const size : {2, 3, 5})
    for (std::size_t const block : {std::size_t{7}, std::size_t{1500}, count}) {
      CAPTURE(size);
      CAPTURE(block);
      auto const check = [&]<class Contract>() {
        sums const& with = sums_of<anywhere, Contract>;
        auto const expected = on_mailbox(with.on_mailbox, size, block, 1, few_fragments);
        require_same_everywhere(with, size, block, expected);
      };
      combining::for_each(check);
    }
}

TEST_CASE("of a table, a level keeps the rows of the algorithms that have it") {
  using collx::tune::row, collx::tune::table;
  using ring = row<collx::algo::ring>;
  using direct = row<collx::algo::direct_one_shot, 4096>;
  using rows = table<ring, direct, ring>;
  constexpr auto kept = []<reproducibility Level>() {
    return collx::tune::detail::keep_rows<collx::contract::all_reduce, Level>(rows{});
  };
  using anywhere = decltype(kept.operator()<reproducibility::any_transport>());
  using again = decltype(kept.operator()<reproducibility::run_to_run>());
  CHECK(std::is_same_v<anywhere, table<direct>>);
  CHECK(std::is_same_v<again, rows>);
}

TEST_CASE("integers have every level") {
  for (rank_t const size : {1, 2, 3, 5})
    watched::on_threads(size, [](collx::communicator<collx::transport::threads>& comm) {
      std::vector<long> v(100, 60 / comm.size()), lowest(100, comm.rank());
      collx::all_reduce<reproducible<reproducibility::any_size>>(comm, v, collx::sum);
      collx::reduce<reproducible<reproducibility::any_size>>(comm, lowest, collx::min, 0);
      if (v != std::vector<long>(100, 60)) throw std::runtime_error("sum");
      if (lowest != std::vector<long>(100, comm.rank())) throw std::runtime_error("min");
    });
  static_assert(collx::is_exact<collx::sum_t, unsigned char>() && !collx::is_exact<collx::sum_t, float>());
  static_assert(!collx::is_exact<decltype(collx::accumulate_in<float>(collx::sum)), int>());
  static_assert(collx::is_exact<decltype(collx::accumulate_in<std::int64_t>(collx::sum)), std::int32_t>());
  // Five ranks with 2^30 each: 2^30 where one pass divides what it holds, not where passes come before.
  static_assert(!collx::is_exact<decltype(collx::accumulate_in<std::int64_t>(collx::avg)), std::int32_t>());
  static_assert(collx::is_exact<decltype(collx::accumulate_in<std::int32_t>(collx::avg)), std::int32_t>());
  static_assert(collx::is_exact<collx::ordered<collx::sum_t>, int>());
  static_assert(!collx::is_exact<collx::ordered<collx::sum_t>, float>());
}

TEST_CASE("a level may be required of collectives that combine nothing") {
  watched::on_threads(3, [](collx::communicator<collx::transport::threads>& comm) {
    std::vector<float> one(1, static_cast<float>(comm.rank())), all(3);
    collx::all_gather<reproducible<reproducibility::any_size>>(comm, one, all);
    if (all != std::vector<float>{0, 1, 2}) throw std::runtime_error("all_gather");
  });
}
