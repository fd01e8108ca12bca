// SPDX-License-Identifier: Apache-2.0
// No memory is allocated or freed on the data path of message transports, mailbox, TCP and composite: by
// blocking calls, by started requests, and by calls that were set up once (persistent). Mapped transports:
// allocation.cpp; MPI and UCX: transport/matched_scenarios.hpp.
// sanitizers: no, they replace operator new themselves
// component: tcp
// compiled: apart, it replaces operator new
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/bootstrap/mailbox.hpp"
#include "collx/collective/exchange.hpp"
#include "collx/collective/persistent.hpp"
#include "exec/counted_calls.hpp"
#include "transport/pretended_hosts.hpp"
#include "watched_tcp.hpp"

namespace {

using collx::rank_t;
using collx::transport::mailbox;
using collx::transport::tcp;

// One of each kind: a fan-in and fan-out, a tree, blocks in scratch, a ring.
using algorithms =
    collx::type_list<collx::algo::direct_one_shot, collx::algo::knomial_tree<4>, collx::algo::pat,
                     collx::algo::recursive_halving_doubling, collx::algo::ring>;

template <class Algorithms, class Transport>
void count_calls(collx::communicator<Transport>& comm) {
  std::vector<oracle::element> in(2 * static_cast<std::size_t>(comm.size()) * 10'007), out(in.size());
  // Connections are made, and remembered, when they are needed first.
  collx::all_to_all(comm, in, out);
  count_every_schedule<Algorithms>(comm, std::span(in), std::span(out));
  // What is set up may allocate; what is started may not, be it the library's choice or not.
  auto const half = std::span(in).first(in.size() / 2);
  auto chosen = collx::persistent::all_reduce(comm, half, oracle::add);
  auto ring = collx::persistent::all_reduce<collx::algo::ring>(comm, std::span(in).first(100), oracle::add);
  collx::exchange list(comm);
  rank_t const size = comm.size();
  list.send(half, (comm.rank() + 1) % size);
  list.receive(std::span(out).first(half.size()), (comm.rank() + size - 1) % size);
  counted const here;
  for (int round = 0; round < 5; ++round) {
    chosen.start();
    ring.start();
    chosen.wait();
    while (!ring.test()) sched_yield();
    list.run();
    list.start().wait();
  }
  here.check("persistent calls and lists of messages");
}

}  // namespace

TEST_CASE("tcp: no allocation on the data path, of blocking, started and persistent calls") {
  for (bool const small_slices : {false, true}) {
    collx::transport::tcp_settings chosen;
    chosen.common.staging_bytes = cases::staging_bytes;
    if (small_slices) chosen.limits = {.flows = 3, .slice_bytes = 1024, .slices_per_flow = 2};
    chosen.checks = small_slices;
    for (rank_t const size : {2, 3, 4}) {
      CAPTURE(size);
      auto const codes = watched::on_tcp_processes(
          size, [](collx::communicator<tcp>& comm) { count_calls<algorithms>(comm); }, chosen);
      for (int const code : codes) CHECK(code == 0);
    }
  }
}

TEST_CASE("composite: no allocation on the data path, of blocking, started and persistent calls") {
  using transport = pretended::shm_and_tcp;
  collx::transport::tcp_settings chosen;
  chosen.common = {.staging_bytes = cases::staging_bytes, .heap_bytes = std::size_t{1} << 20};
  // Each rank's neighbours are elsewhere: to them there is a connection for control, which stands once there
  // are messages, and to ranks of its own host there is none that could come to stand during a call.
  auto const codes = pretended::on_hosts(
      {1, 2, 1, 2},
      [](collx::communicator<transport>& comm) {
        count_calls<collx::type_list<collx::algo::direct_one_shot, collx::algo::ring>>(comm);
      },
      chosen);
  for (int const code : codes) CHECK(code == 0);
}

namespace {

// All ranks are in this thread: what any of them allocates is counted.
void count_on_mailboxes(schedules::entry<forms::started, mailbox> const& called,
                        collx::bootstrap::mailbox_ranks<>& ranks, rank_t size,
                        std::vector<std::vector<oracle::element>> const& in,
                        std::vector<std::vector<oracle::element>>& out) {
  oracle::collective const& what = *called.collective;
  collx::array<collx::request<mailbox::endpoint>> requests(static_cast<std::size_t>(size));
  for (std::size_t const count : {std::size_t{1}, std::size_t{61}, cases::large_count(what, size)}) {
    counted const here;
    for (rank_t r = 0; r < size; ++r) {
      auto const i = static_cast<std::size_t>(r);
      requests[i] = called.with_room(ranks[r], size / 2, count, in[i], out[i]);
    }
    // drive() has a list of its own.
    for (std::size_t open = requests.size(); open != 0;) {
      open = 0;
      for (auto& each : requests) open += each.try_test() == collx::status::pending;
    }
    here.check(what.name, called.algorithm, count);
  }
}

}  // namespace

TEST_CASE("mailbox: no allocation on the data path, of started and persistent calls") {
  for (rank_t const size : {2, 3, 5}) {
    CAPTURE(size);
    collx::bootstrap::mailbox_ranks<> ranks(size, 7, {.staging_bytes = cases::staging_bytes});
    auto const n = static_cast<std::size_t>(size);
    std::vector<std::vector<oracle::element>> in(n), out(n);
    for (std::size_t r = 0; r < n; ++r) {
      in[r].resize(2 * n * 10'007);
      out[r].resize(in[r].size());
    }
    int done = 0;
    for (auto const& each : schedules::all<forms::started, mailbox, algorithms>()) {
      if (!each.supports(size) || each.depth(size) > 2) continue;
      count_on_mailboxes(each, ranks, size, in, out);
      ++done;
    }
    CHECK(done > 0);
    using sum = decltype(collx::persistent::all_reduce(ranks[0], std::span(in[0]), oracle::add));
    std::vector<sum> sums;
    for (rank_t r = 0; r < size; ++r)
      sums.push_back(collx::persistent::all_reduce(
          ranks[r], std::span(in[static_cast<std::size_t>(r)]).first(9'000), oracle::add));
    counted const here;
    for (int round = 0; round < 3; ++round) {
      for (sum& each : sums) each.start();
      for (std::size_t open = n; open != 0;) {
        open = 0;
        for (sum& each : sums) open += each.try_test() == collx::status::pending;
      }
    }
    CHECK_NOTHROW(here.check("persistent"));
  }
}
