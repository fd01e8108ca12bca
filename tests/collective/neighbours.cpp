// SPDX-License-Identifier: Apache-2.0
// Collectives on graphs, on the mailbox, threads and processes (messages.cpp has other transports); wrong
// arguments, and counts that disagree.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collective/graph_calls.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "collx/collective/agreement.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/split.hpp"
#include "sample.hpp"
#include "watched.hpp"

using namespace graphs;

TEST_CASE("neighbours: mailbox") {
  using request = collx::request<collx::transport::mailbox::endpoint>;
  using on_mailbox = calls<collx::transport::mailbox>;
  for (rank_t size = 1; size <= 9; ++size) {
    if (!sample::takes_running(size)) continue;
    std::uint64_t seed = 0;
    for_each_graph(size, 20, [&](edges_t const& all, std::size_t count) {
      CAPTURE(size);
      CAPTURE(count);
      ++seed;
      collx::bootstrap::mailbox_ranks<> ranks(size, seed, small_staging, 1 + seed % 3);
      std::vector<std::unique_ptr<on_mailbox>> each;
      for (rank_t r = 0; r < size; ++r) each.push_back(std::make_unique<on_mailbox>(ranks[r], all, count));
      auto const drive = [&](auto start, auto check) {
        collx::array<request> requests(each.size());
        for (std::size_t r = 0; r < each.size(); ++r) requests[r] = (*each[r].*start)();
        REQUIRE(ranks.drive(requests) == status::ok);
        for (auto const& c : each) ((*c).*check)();
      };
      drive(&on_mailbox::gather, &on_mailbox::check_gather);
      drive(&on_mailbox::to_all, &on_mailbox::check_to_all);
      drive(&on_mailbox::to_all_v, &on_mailbox::check_to_all_v);
      drive(&on_mailbox::gather_v, &on_mailbox::check_gather_v);
    });
  }
}

TEST_CASE("neighbours: threads") {
  for (rank_t size = 1; size <= 9; ++size)
    if (sample::takes_running(size)) watched::on_threads(size, every_graph, small_staging);
}

TEST_CASE("neighbours: processes") {
  for (rank_t const size : {2, 3, 4, 8})
    if (sample::takes_running(size))
      for (int const code : watched::on_processes(size, every_graph, small_staging)) CHECK(code == 0);
}

TEST_CASE("neighbours: wrong arguments are named; counts that disagree name the peer and the bytes") {
  watched::on_threads(2, [](auto& comm) {
    auto const refuses = [&](char const* what, auto const& call) {
      try {
        call();
      } catch (collx::error const& refused) {
        if (refused.code() != status::bad_argument) throw;
        require(std::string(refused.what()).find(what) != std::string::npos, refused.what());
        return;
      }
      throw std::runtime_error(std::string("accepted: ") + what);
    };
    std::vector<rank_t> const self{comm.rank()}, nobody{}, wrong{2};
    refuses("rank 2 among its sources is no rank", [&] { collx::graph(comm, wrong, nobody); });
    refuses("rank 2 among its destinations is no rank", [&] { collx::graph(comm, nobody, wrong); });
    refuses("as often among its own sources", [&] { collx::graph(comm, self, nobody); });
    rank_t const other = 1 - comm.rank();
    refuses("rank 2 among its sources", [&] { collx::graph(comm, {other, 2}, {other}); });
    collx::graph const edges(comm, {other}, {other});
    require(edges.sources()[0] == other && edges.destinations().size() == 1, "a graph of lists in braces");
    std::vector<int> in(4), out(5);
    refuses(" of 2: the output must",
            [&] { collx::neighbour_all_gather(comm, edges, in, out); });
    refuses(" of 2: the output must",
            [&] { collx::neighbour_all_to_all(comm, edges, in, out); });
    refuses("no in-place form", [&] { collx::neighbour_all_gather(comm, edges, in, in); });
    counts_t const two{2, 2}, five{5}, six{6};
    refuses("for every source", [&] {
      collx::neighbour_all_gather_v(comm, edges, in, blocks<int>{out, two});
    });
    refuses("behind the end", [&] { collx::neighbour_all_gather_v(comm, edges, in, blocks<int>{out, six}); });
    auto half = comm.split(0, comm.rank());
    out.resize(4);
    refuses("another communicator", [&] { collx::neighbour_all_gather(half, edges, in, out); });
    require(collx::try_neighbour_all_gather(half, edges, in, out) == status::bad_argument, "try_");
    comm.checking(collx::checking_level::communication);
    collx::neighbour_all_gather(comm, edges, in, out);
    comm.checking(collx::checking_level::normal);
    collx::barrier(comm);

    in.resize(comm.rank() == 0 ? 5 : 4);
    status const outcome = collx::try_neighbour_all_gather_v(comm, edges, in, blocks<int>{out, counts_t{4}});
    if (comm.rank() == 1) {
      collx::failure_report const& report = comm.failure();
      require(
          outcome == status::mismatch && report.peer == 0 && report.bytes == 16 && report.peer_bytes == 20,
          "a wrong report");
    } else {
      require(outcome == status::ok || outcome == status::aborted, "neither ok nor aborted");
    }
  });
}
