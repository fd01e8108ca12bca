// SPDX-License-Identifier: Apache-2.0
// What is not one of the matrix' collectives, where ranks share no memory: blocks of different counts,
// exchanges, graphs and groups over sockets. Ranks are threads with worlds of their own; messages_mailbox.cpp
// has those that a seed steps.
// ctest: TIMEOUT 300
#include <doctest/doctest.h>

#include "collective/exchange_order.hpp"
#include "collective/exchange_plans.hpp"
#include "collective/graph_calls.hpp"
#include "collective/group_mixture.hpp"
#include "collective/uneven_calls.hpp"
#include "collx/algo/all.hpp"
#include "collx/collx.hpp"
#include "require.hpp"
#include "sample.hpp"
#include "transport/wired.hpp"
#include "watchdog.hpp"

namespace {

using collx::rank_t;
using collx::transport::tcp;
using collx::transport::tcp_settings;

// One connection per pair, and three with slices so small that the smallest payloads but one are several.
std::vector<tcp_settings> both_ways() {
  tcp_settings plain, sliced;
  plain.common.staging_bytes = sliced.common.staging_bytes = 64 * 1024;
  sliced.limits = {.flows = 3, .slice_bytes = 1024, .slices_per_flow = 2};
  sliced.checks = true;
  return {plain, sliced};
}

void over_sockets(std::initializer_list<rank_t> sizes, auto const& rank_main) {
  for (rank_t const size : sizes)
    for (tcp_settings const& chosen : both_ways()) {
      if (!sample::takes_running(size)) continue;
      watchdog dog;
      wired::on_wired_threads(size, chosen, [&](collx::communicator<tcp>& comm) {
        auto const watched = dog.watch(comm);
        rank_main(comm);
        collx::barrier(comm);  // a rank that only sends must not end before all have joined
      });
    }
}

}  // namespace

TEST_CASE("messages: every algorithm that takes uneven blocks, in every form") {
  over_sockets({1, 2, 3, 4, 6}, uneven::every_pattern<sample::algorithms>);
}

TEST_CASE("messages: exchanges, blocking and started") {
  over_sockets({1, 2, 3, 5}, exchanges::blocking_and_started);
}

TEST_CASE("messages: a receiver that takes a long message last keeps nobody else from his") {
  over_sockets({3, 4}, [](auto& comm) { exchanges::every_late_last(comm); });
}

TEST_CASE("messages: nine to a peer wait for no receive") {
  over_sockets({2, 3}, [](auto& comm) {
    exchanges::nine_before_one(comm, 64);
    exchanges::nine_before_one(comm, 1023);
  });
}

TEST_CASE("messages: send and receive, one after the other") {
  over_sockets({2, 3, 4}, [](auto& comm) {
    rank_t const n = comm.size(), right = (comm.rank() + 1) % n, left = (comm.rank() + n - 1) % n;
    for (std::size_t const count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{50'000}}) {
      std::vector<int> own(count, comm.rank()), theirs(count, -1);
      // Around the ring: one of them receives first.
      if (comm.rank() == 0) collx::receive(comm, theirs, left);
      collx::send(comm, own, right);
      if (comm.rank() != 0) collx::receive(comm, theirs, left);
      require(theirs == std::vector<int>(count, left), "send and receive");
    }
  });
}

TEST_CASE("messages: graphs, in every form") { over_sockets({1, 2, 3, 5}, graphs::every_graph); }

TEST_CASE("messages: groups") { over_sockets({1, 2, 3, 5}, mixtures::every_mixture); }

TEST_CASE("messages: every collective with equal blocks, set up once and started with new data") {
  over_sockets({1, 2, 3, 4}, [](auto& comm) {
    rank_t const n = comm.size(), me = comm.rank(), root = n - 1;
    auto const ranks = static_cast<std::size_t>(n);
    for (std::size_t const count : {std::size_t{0}, std::size_t{1}, std::size_t{5003}}) {
      std::vector<int> one(count), own(count), all(ranks * count), gathered(ranks * count), sums(count),
          scanned(count);
      auto sum = collx::persistent::all_reduce(comm, own, sums);
      auto gather = collx::persistent::all_gather(comm, own, gathered);
      auto scatter = collx::persistent::reduce_scatter(comm, all, one, collx::max);
      auto spread = collx::persistent::broadcast(comm, own, root);
      auto scan = collx::persistent::scan(comm, own, scanned);
      auto line = collx::persistent::barrier(comm);
      for (int round = 1; round <= 3; ++round) {
        std::fill(own.begin(), own.end(), round * (me + 1));
        std::fill(all.begin(), all.end(), round * (me + 2));
        sum.start();
        gather.start();
        scatter.start();
        scan.start();
        scan.wait();
        scatter.wait();
        line.start();
        line.wait();
        gather.wait();
        sum.wait();
        spread.start();
        spread.wait();
        require(sums == std::vector<int>(count, round * n * (n + 1) / 2), "all_reduce");
        require(one == std::vector<int>(count, round * (n + 1)), "reduce_scatter");
        require(scanned == std::vector<int>(count, round * (me + 1) * (me + 2) / 2), "scan");
        require(own == std::vector<int>(count, round * (root + 1)), "broadcast");
        for (std::size_t i = 0; i < gathered.size(); ++i)
          require(gathered[i] == round * (static_cast<int>(i / count) + 1), "all_gather");
      }
    }
  });
}
