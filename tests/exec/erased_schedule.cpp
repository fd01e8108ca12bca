// SPDX-License-Identifier: Apache-2.0
// A schedule as values gives the answers of the schedule.
// sanitizers: no, arithmetic on integers, which schedule/verify_algorithms.cpp walks under them
#include "collx/exec/erased_schedule.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/schedule/type_list.hpp"

namespace {

using collx::rank_t;

struct same_answers {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    collx::exec::erased_schedule const& erased = collx::exec::erased_schedule_of<Schedule>;
    CAPTURE(Contract::name);
    CAPTURE(Algorithm::name);
    CHECK(erased.rooted == Contract::rooted);
    for (rank_t const size : {1, 2, 3, 5, 8}) {
      if (!collx::supports<Schedule>(size)) continue;
      CAPTURE(size);
      collx::exec::schedule_facts const facts = erased.facts(size);
      CHECK(facts.chunk_count == collx::chunk_count<Schedule>(size));
      CHECK(facts.blocks == Contract::blocks(size));
      CHECK(facts.scratch_chunks == collx::scratch_chunks<Schedule>(size));
      CHECK(facts.shares_copying == collx::shares_copying<Schedule>(size));
      CHECK(erased.staged_bound(size) == collx::staged_chunks_bound<Schedule>(size));
      for (rank_t rank = 0; rank < size; ++rank) compare<Contract, Schedule>({rank, size, size - 1});
    }
  }

  template <class Contract, class Schedule>
  static void compare(collx::problem p) {
    collx::exec::erased_schedule const& erased = collx::exec::erased_schedule_of<Schedule>;
    REQUIRE(erased.step_count(p) == Schedule::step_count(p));
    for (std::int32_t i = 0; i < Schedule::step_count(p); ++i)
      REQUIRE(erased.step(p, i) == Schedule::step(p, i));
    collx::exec::buffer_windows const held = collx::exec::erased_contract_of<Contract>.windows(p);
    REQUIRE(same(held.input, Contract::input(p)));
    REQUIRE(same(held.output, Contract::output(p)));
  }

  static bool same(collx::block_window const& a, collx::block_window const& b) {
    return a.first == b.first && a.count == b.count && a.stride == b.stride;
  }
};

struct keeps_to_its_bound {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    CAPTURE(Contract::name);
    CAPTURE(Algorithm::name);
    for (rank_t const size : {1, 2, 3, 5, 8, 13, 32, 64}) {
      if (!collx::supports<Schedule>(size)) continue;
      CAPTURE(size);
      std::int64_t const kept = collx::scratch_chunks<Schedule>(size);
      std::int64_t const bound = collx::staged_chunks_bound<Schedule>(size);
      CHECK(collx::exec::largest_staged<Schedule>(size) <= std::max({std::int64_t{1}, kept, bound}));
    }
  }
};

}  // namespace

TEST_CASE("a schedule as values gives the answers of the schedule") {
  collx::for_each_schedule<collx::algo::all, collx::contract::all>(same_answers{});
}

TEST_CASE("what a schedule stages is counted, remembered, and bounded where it would take long to count") {
  using ring = collx::algo::ring::all_reduce;
  // Every rank sends a chunk in each step: twice all others'.
  for (rank_t const size : {2, 5, 64, 5}) CHECK(collx::exec::largest_staged<ring>(size) == 2 * (size - 1));
  rank_t const many = collx::exec::counted_size_max + 1;
  CHECK(collx::exec::largest_staged<ring>(many) == collx::documented_cost<ring>(many).chunks);
  // Not each receiver's copy of what all of them get.
  CHECK(collx::exec::largest_staged<collx::algo::push_pull::broadcast>(many) == many);
  CHECK(collx::exec::largest_staged<collx::algo::push_pull::all_gather>(many) == 1);
  CHECK(collx::exec::largest_staged<collx::algo::direct_one_shot::broadcast>(many) == 1);
}

TEST_CASE("no schedule stages more than it says, or sends") {
  collx::for_each_schedule<collx::algo::all, collx::contract::all>(keeps_to_its_bound{});
}
