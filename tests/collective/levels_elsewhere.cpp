// SPDX-License-Identifier: Apache-2.0
// The level of reproducibility that says "the same bits on any transport", over sockets and across hosts:
// what the mailbox gives. (levels.cpp: mailbox, threads and processes.)
// component: tcp
// sanitizers: no, half a minute, for code that types.cpp and the matrices run under them
#include <cstring>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "collective/rounded_sums.hpp"
#include "collx/algo/all.hpp"
#include "collx/collective/all_reduce_fixed_tree.hpp"
#include "collx/collx.hpp"
#include "sample.hpp"
#include "transport/pretended_hosts.hpp"
#include "transport/wired.hpp"
#include "watched.hpp"

namespace {

using namespace rounded_sums;
using collx::reproducibility;
using collx::transport::tcp;
using collx::transport::tcp_settings;

// What every rank must get, of every algorithm that promises it.
struct expectation {
  rank_t size;
  std::vector<std::vector<bits>> of{};

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if constexpr (collx::level_of<Schedule>() >= reproducibility::any_transport)
      if (collx::supports<Schedule>(size))
        of.push_back(on_mailbox<Algorithm, Contract>(size, count, 1, many_fragments));
  }
};

// The same walk on one rank of another transport.
template <class Transport>
struct comparison {
  collx::communicator<Transport>& comm;
  std::vector<std::vector<bits>> const& expected;
  std::size_t next = 0;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if constexpr (collx::level_of<Schedule>() >= reproducibility::any_transport)
      if (collx::supports<Schedule>(comm.size()))
        require_same<Algorithm, Contract>(comm, count, expected[next++]);
  }
};

// A sum over a fixed tree, whose bits do not depend on the number of ranks either, of values that any other
// order of additions rounds differently.
template <class Transport>
std::vector<float> over_tree(collx::communicator<Transport>& comm) {
  collx::fixed_tree const tree{24};
  collx::leaf_range const mine = tree.share(comm.rank(), comm.size());
  std::vector<float> in, out(1237);
  for (std::int32_t leaf = mine.begin; leaf < mine.end; ++leaf)
    for (std::size_t i = 0; i < out.size(); ++i) in.push_back(contribution(leaf, i));
  collx::all_reduce_fixed_tree(comm, tree, in, out, collx::sum);
  return out;
}

// What it gives where one rank has all leaves. First asked for before there are ranks.
std::vector<float> const& over_tree_of_one() {
  static std::vector<float> const found = [] {
    std::vector<float> sums;
    watched::on_threads(
        1, [&](collx::communicator<collx::transport::threads>& alone) { sums = over_tree(alone); });
    return sums;
  }();
  return found;
}

std::vector<std::vector<bits>> expected_of(rank_t size) {
  REQUIRE(over_tree_of_one().size() == 1237);
  expectation all{size};
  collx::for_each_schedule<sample::algorithms, combining>(all);
  REQUIRE(all.of.size() >= combining::size);
  return all.of;
}

template <class Transport>
void compare(collx::communicator<Transport>& comm, std::vector<std::vector<bits>> const& expected) {
  comparison<Transport> all{comm, expected};
  collx::for_each_schedule<sample::algorithms, combining>(all);
  if (all.next != expected.size()) throw std::runtime_error("walked something else");
  std::vector<float> const found = over_tree(comm), &right = over_tree_of_one();
  if (std::memcmp(found.data(), right.data(), right.size() * sizeof(float)) != 0)
    throw std::runtime_error("all_reduce_fixed_tree: other bits");
  collx::barrier(comm);  // a rank that only sends must not end before all have joined
}

tcp_settings staging(collx::transport::settings const& common) {
  tcp_settings chosen;
  chosen.common.staging_bytes = common.staging_bytes;
  return chosen;
}

}  // namespace

TEST_CASE("levels: the same bits over sockets, on one connection per pair and on three") {
  for (rank_t const size : {2, 3, 5}) {
    CAPTURE(size);
    auto const expected = expected_of(size);
    tcp_settings one = staging(few_fragments), three = staging(many_fragments);
    three.limits = {.flows = 3, .slice_bytes = 1024, .slices_per_flow = 2};
    for (tcp_settings const& chosen : {one, three})
      wired::on_wired_threads(size, chosen, [&](collx::communicator<tcp>& comm) { compare(comm, expected); });
  }
}

TEST_CASE("levels: the same bits wherever the hosts' borders are") {
  for (auto const& hosts :
       std::vector<std::vector<std::uint64_t>>{{1, 1, 2, 2}, {1, 2, 2, 1}, {1, 2, 3, 3, 3}}) {
    auto const expected = expected_of(static_cast<rank_t>(hosts.size()));
    for (auto const& common : {few_fragments, many_fragments})
      for (int const code : pretended::on_hosts(
               hosts, [&](collx::communicator<pretended::shm_and_tcp>& comm) { compare(comm, expected); },
               staging(common)))
        CHECK(code == 0);
  }
}
