// SPDX-License-Identifier: Apache-2.0
// No memory is allocated or freed between the construction of a communicator and its end: counted by
// replacing operator new and delete in this program, per thread.
// sanitizers: no, they replace operator new themselves
// compiled: apart, it replaces operator new
#include <vector>

#include <doctest/doctest.h>

#include "collective/each_rank.hpp"
#include "collx/algo/all.hpp"
#include "collx/bootstrap/local.hpp"
#include "collx/collective/all_gather_v.hpp"
#include "collx/collective/all_reduce_fixed_tree.hpp"
#include "collx/collective/all_to_all_v.hpp"
#include "collx/collective/gather_v.hpp"
#include "collx/collective/group.hpp"
#include "collx/collective/neighbour_all_gather.hpp"
#include "collx/collective/neighbour_all_to_all.hpp"
#include "collx/collective/reduce_scatter_v.hpp"
#include "collx/collective/scatter_v.hpp"
#include "collx/collective/send_receive.hpp"
#include "exec/counted_calls.hpp"
#include "sample.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;

template <class Transport>
void count_allocations(collx::communicator<Transport>& comm, std::span<oracle::element> in,
                       std::span<oracle::element> out) {
  count_every_schedule<sample::algorithms>(comm, in, out);
  // The library's own choice, barriers, and as many requests at once as there may be and more.
  counted const here;
  collx::all_reduce(comm, in, oracle::add);
  collx::barrier(comm);
  {
    using request = collx::request<typename Transport::endpoint>;
    request many[20];
    for (request& each : many) each = collx::start::all_reduce(comm, in.first(100), oracle::add);
    for (request& each : many) each.wait();
  }
  here.check("many at once");
}

// What is made once, and then used again and again: lists of messages, graphs, groups of calls.
template <class Transport>
void count_allocations_of_lists(collx::communicator<Transport>& comm) {
  rank_t const size = comm.size(), left = (comm.rank() + size - 1) % size, right = (comm.rank() + 1) % size;
  std::vector<oracle::element> in(30'000), out(2 * in.size()), some(10), others(10);
  std::vector<rank_t> const both{left, right};
  collx::exchange list(comm);
  collx::graph const edges(comm, both, both);
  collx::group together(comm, 4096);
  // Its memory is that of the first call, of a blocking one and of two that are in flight.
  std::vector<oracle::element> sum(1000), sum_too(sum.size()), leaves(3 * sum.size());
  collx::fixed_tree const tree{2 * size + 1};
  auto const own =
      std::span(leaves).first(static_cast<std::size_t>(tree.share(comm.rank(), size).count()) * sum.size());
  auto const sum_leaves = [&] {
    collx::all_reduce_fixed_tree(comm, tree, own, sum, oracle::add);
    auto first = collx::start::all_reduce_fixed_tree(comm, tree, own, sum, oracle::add);
    auto second = collx::start::all_reduce_fixed_tree(comm, tree, own, sum_too, oracle::add);
    first.wait();
    second.wait();
  };
  auto again = collx::persistent::all_reduce_fixed_tree(comm, tree, own, sum, oracle::add);
  auto set_up = collx::persistent::all_reduce(comm, sum_too, oracle::add);
  // Blocks of all lengths, one of them empty: rank r's are r times 1000 long.
  std::vector<std::size_t> of_ranks, of_mine(static_cast<std::size_t>(size));
  for (rank_t r = 0; r < size; ++r) of_ranks.push_back(static_cast<std::size_t>(r) * 1000);
  for (std::size_t& each : of_mine) each = of_ranks[static_cast<std::size_t>(comm.rank())];
  auto const given = std::span(std::as_const(in));
  collx::blocks<oracle::element> const everybodys{out, of_ranks}, mine{out, of_mine};
  collx::blocks<oracle::element const> const sent{given, of_ranks};
  sum_leaves();
  counted const here;
  for (int i = 0; i < 3; ++i) {
    list.clear();
    list.send(in, left);
    list.receive(std::span(out).first(in.size()), right);
    list.run();
    list.start().wait();
    again.start();
    again.wait();
    set_up.start();
    set_up.wait();
    collx::all_gather_v(comm, given.first(of_mine[0]), everybodys);
    collx::start::all_gather_v(comm, given.first(of_mine[0]), everybodys).wait();
    collx::all_to_all_v(comm, sent, mine);
    collx::reduce_scatter_v(comm, sent, std::span(out).first(of_mine[0]), oracle::add);
    collx::gather_v(comm, given.first(of_mine[0]), everybodys, 1);
    collx::scatter_v(comm, sent, std::span(out).first(of_mine[0]), 1);
    if (comm.rank() == 0) collx::send(comm, in, 1);
    if (comm.rank() == 1) collx::receive(comm, std::span(out).first(in.size()), 0);
    collx::neighbour_all_to_all(comm, edges, given.first(20'000), std::span(out).first(20'000));
    collx::neighbour_all_gather(comm, edges, in, out);
    collx::start::neighbour_all_gather(comm, edges, in, out).wait();
    together.all_reduce(some, oracle::add);
    together.all_reduce(others, oracle::add);
    together.run();
    together.all_reduce(some, oracle::add);
    together.all_reduce(others, oracle::add);
    together.start().wait();
    sum_leaves();
  }
  here.check("a list of messages or calls");
}

}  // namespace

TEST_CASE("the counters count") {
  std::size_t const before = calls_of_new;
  std::vector<int> const some(100);
  CHECK(some.size() == 100);
  CHECK(calls_of_new == before + 1);
}

TEST_CASE("threads: no allocation on the data path, of blocking calls and of started requests") {
  for (rank_t const size : {2, 3, 4}) {
    CAPTURE(size);
    watched::on_threads(size,
                        [&](auto& comm) {
                          std::vector<oracle::element> in(each_rank::memory_count(size)),
                              out(each_rank::memory_count(size));
                          count_allocations(comm, in, out);
                          count_allocations_of_lists(comm);
                        },
                        {.staging_bytes = cases::staging_bytes});
  }
}

TEST_CASE("shm: no allocation on the data path, with private and with symmetric memory") {
  for (rank_t const size : {2, 3, 4}) {
    CAPTURE(size);
    auto const codes = watched::on_processes(
        size,
        [&](auto& comm) {
          std::vector<oracle::element> in(each_rank::memory_count(size)), out(each_rank::memory_count(size));
          count_allocations(comm, in, out);
          count_allocations_of_lists(comm);
          auto const shared_in = comm.template allocate<oracle::element>(in.size());
          auto const shared_out = comm.template allocate<oracle::element>(out.size());
          count_allocations(comm, shared_in.span(), shared_out.span());
        },
        {.staging_bytes = cases::staging_bytes});
    for (int const code : codes) CHECK(code == 0);
  }
}
