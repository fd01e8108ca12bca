// SPDX-License-Identifier: Apache-2.0
// Memory behind a switch, over a driver that is played: every rank has it, or, whichever step fails on
// whichever rank, none has, and nothing is left of it.
#include <doctest/doctest.h>

#include "collx/collective/all_gather.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/transport/cuda/multicast.hpp"
#include "transport/played_driver.hpp"
#include "watched.hpp"

namespace {

using namespace collx::transport::cuda_parts;
using collx::rank_t;
using collx::status;
using played_driver::driver;
using played_driver::machine;
using played_driver::unit;

static_assert(multicast_driver<driver>);

// How a rank is placed; by default each has a GPU of its own in one process.
struct traits {
  std::size_t bytes = unit + 100;
  int device;
  bool is_one_process = true;
};

// What came of it on each rank.
struct result {
  std::uint64_t object = 0;
  bool has_own = false, has_all = false;
  status thrown = status::ok;
};

// All ranks set it up, and undo it. `place(rank)`: its traits; `seen(m)`: while all have it.
template <class Place, class Seen>
std::vector<result> set_up(machine& m, rank_t size, Place const& place, Seen const& seen) {
  std::vector<result> all(static_cast<std::size_t>(size));
  watched::on_threads(size, [&](auto& comm) {
    result& mine = all[static_cast<std::size_t>(comm.rank())];
    traits const how = place(comm.rank());
    driver const here(m, comm.rank());
    auto const gather = [&](multicast_offer const& told) {
      collx::array<multicast_offer> offers(static_cast<std::size_t>(size));
      collx::all_gather(comm, std::span(&told, 1), offers);
      return offers;
    };
    multicast_replica<driver> replica;
    try {
      mine.object =
          set_up_multicast(here, {comm.rank(), how.device, how.is_one_process}, how.bytes, gather, replica);
    } catch (collx::error const& e) {
      mine.thrown = e.code();
    }
    mine.has_own = replica.own() != nullptr, mine.has_all = replica.all() != nullptr;
    collx::barrier(comm);
    if (comm.rank() == 0) seen(m);
    collx::barrier(comm);
    replica.undo();
    collx::barrier(comm);
    if (comm.rank() == 0 && mine.object != 0) {
      driver mutable_here = here;
      CHECK(mutable_here.release(mine.object) == 0);
    }
  });
  CHECK(m.is_empty());
  CHECK(m.wrong == std::vector<std::string>{});
  return all;
}
traits apart(rank_t r) { return {.device = r}; }
void look_at_nothing(machine&) {}

void check_that_none_has(std::vector<result> const& all) {
  for (result const& each : all) {
    CHECK(each.object == 0);
    CHECK_FALSE(each.has_own);
    CHECK_FALSE(each.has_all);
    CHECK(each.thrown == status::ok);
  }
}

}  // namespace

TEST_CASE("multicast: where every step works, every rank has a replica and the address of all") {
  for (rank_t const size : {2, 4}) {
    machine m;
    auto const all = set_up(m, size, apart, [&](machine& now) {
      // A replica each, which all devices reach; and an object, which each maps for itself.
      std::size_t replicas = 0, objects = 0;
      for (auto const& [id, memory] : now.memories) {
        (memory.is_object ? objects : replicas) += 1;
        CHECK(memory.bytes == 2 * unit);
        CHECK(memory.mappings == (memory.is_object ? size : 1));
        if (memory.is_object) CHECK(memory.bound.size() == static_cast<std::size_t>(size));
      }
      CHECK(replicas == static_cast<std::size_t>(size));
      CHECK(objects == 1);
      for (auto const& [address, range] : now.ranges) {
        bool const is_of_all = now.memories.at(range.memory).is_object;
        CHECK(range.devices.size() == (is_of_all ? 1 : static_cast<std::size_t>(size)));
      }
    });
    for (result const& each : all) {
      CHECK(each.object != 0);
      CHECK(each.object == all[0].object);
      CHECK(each.has_own);
      CHECK(each.has_all);
    }
  }
}

TEST_CASE("multicast: whichever step fails on whichever rank, no rank has it, and nothing is left") {
  for (char const* step : {"can_multicast", "object_unit", "unit", "create_object", "add_device", "create",
                           "bind", "reserve", "map", "grant"})
    for (rank_t const who : {0, 1, 2}) {
      CAPTURE(step);
      CAPTURE(who);
      bool const nobody_else_does = std::string(step) == "create_object" && who != 0;
      if (nobody_else_does) continue;
      machine m;
      m.refuses = [&](int rank, std::string const& called) { return rank == who && called == step; };
      check_that_none_has(set_up(m, 3, apart, look_at_nothing));
    }
}

TEST_CASE("multicast: the second mapping of a rank may fail as well as its first") {
  for (char const* step : {"reserve", "map", "grant"}) {
    CAPTURE(step);
    machine m;
    int calls = 0;
    m.refuses = [&](int rank, std::string const& called) {
      return rank == 1 && called == step && ++calls == 2;
    };
    check_that_none_has(set_up(m, 3, apart, look_at_nothing));
    CHECK(calls == 2);
  }
}

TEST_CASE("multicast: ranks whose drivers round differently have none") {
  machine m;
  m.unit_of = [](int rank) { return rank == 1 ? 4 * unit : unit; };
  check_that_none_has(set_up(m, 3, apart, look_at_nothing));
}

TEST_CASE("multicast: neither have ranks that share a GPU, are alone, are processes, or ask for nothing") {
  machine m;
  check_that_none_has(set_up(
      m, 3, [](rank_t r) { return traits{.device = r / 2}; }, look_at_nothing));
  check_that_none_has(set_up(m, 1, apart, look_at_nothing));
  check_that_none_has(set_up(
      m, 2, [](rank_t r) { return traits{.device = r, .is_one_process = false}; }, look_at_nothing));
  check_that_none_has(set_up(
      m, 2, [](rank_t r) { return traits{.bytes = 0, .device = r}; }, look_at_nothing));
  for (std::string const& call : m.calls) CHECK(call == "can_multicast");
}

TEST_CASE("multicast: counts that differ are refused on all ranks") {
  machine m;
  auto const all = set_up(
      m, 3, [](rank_t r) { return traits{.bytes = r == 1 ? unit : 2 * unit, .device = r}; }, look_at_nothing);
  for (result const& each : all) CHECK(each.thrown == status::bad_argument);
}

TEST_CASE("multicast: a rank that loses the others when it has bound its memory is bound no more") {
  for (rank_t const who : {0, 1, 2}) {
    CAPTURE(who);
    machine m;
    watched::on_threads(3, [&](auto& comm) {
      bool const loses = comm.rank() == who;
      driver here(m, comm.rank());
      int steps = 0;
      auto const gather = [&](multicast_offer const& told) {
        collx::array<multicast_offer> offers(3);
        collx::all_gather(comm, std::span(&told, 1), offers);
        if (++steps == 4 && loses) throw collx::error(status::peer_lost, "a test");
        return offers;
      };
      multicast_replica<driver> replica;
      std::uint64_t object = 0;
      bool thrown = false;
      try {
        object = set_up_multicast(here, {comm.rank(), comm.rank(), true}, unit, gather, replica);
      } catch (collx::error const& e) {
        thrown = e.code() == status::peer_lost;
      }
      CHECK(thrown == loses);
      CHECK((replica.own() == nullptr) == loses);
      CHECK((replica.all() == nullptr) == loses);
      collx::barrier(comm);
      replica.undo();
      collx::barrier(comm);
      if (comm.rank() == (who == 0 ? 1 : 0)) CHECK(here.release(object) == 0);
    });
    CHECK(m.is_empty());
    CHECK(m.wrong == std::vector<std::string>{});
  }
}
