// SPDX-License-Identifier: Apache-2.0
// A schedule as values gives the answers of the schedule.
// thread sanitizer: no, there is one thread
#include "collx/exec/erased_schedule.hpp"

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
      CHECK(erased.documented_chunks(size) == collx::documented_cost<Schedule>(size).chunks);
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
}
