// SPDX-License-Identifier: Apache-2.0
// Memory behind a switch, over a driver that is played: every rank has it, or, whichever step fails on
// whichever rank, none has, and nothing is left of it.
#include <doctest/doctest.h>
#include <unistd.h>

#include "collx/collective/all_gather.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/transport/cuda/multicast.hpp"
#include "transport/played_driver.hpp"
#include "watched.hpp"

namespace {

using namespace collx::transport::cuda_parts;
namespace net = collx::net;
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
  int process = 0;

  [[nodiscard]] multicast_place place(rank_t rank) const {
    return {rank,
            device,
            {static_cast<std::uint64_t>(device), static_cast<std::uint64_t>(process)},
            {process, 5}};
  }
};

// What came of it on each rank.
struct result {
  std::uint64_t object = 0;
  bool has_own = false, has_all = false;
  status thrown = status::ok;
};

// Hands the descriptor of rank 0 to ranks of other processes. Told to fail as functions of the driver are.
template <class Comm>
net::owned_fd pass(Comm& comm, machine& m, int fd, int& of_zero, bool is_near) {
  if (comm.rank() == 0) of_zero = fd;
  collx::barrier(comm);
  net::owned_fd theirs(is_near || of_zero < 0 ? -1 : dup(of_zero));
  collx::barrier(comm);
  if (m.refuses(comm.rank(), "share")) throw collx::error(status::timeout, "a test");
  return theirs;
}

template <class Comm>
auto gathering(Comm& comm) {
  return [&comm](multicast_offer const& told) {
    collx::array<multicast_offer> offers(static_cast<std::size_t>(comm.size()));
    collx::all_gather(comm, std::span(&told, 1), offers);
    return offers;
  };
}

// All ranks set it up, and undo it. `place(rank)`: its traits; `seen(m)`: while all have it.
template <class Place, class Seen>
std::vector<result> set_up(machine& m, rank_t size, Place const& place, Seen const& seen) {
  std::vector<result> all(static_cast<std::size_t>(size));
  int of_zero = -1;
  watched::on_threads(size, [&](auto& comm) {
    result& mine = all[static_cast<std::size_t>(comm.rank())];
    traits const how = place(comm.rank());
    driver const here(m, comm.rank(), how.process);
    bool const is_near = how.process == place(0).process;
    auto const share = [&](int fd) { return pass(comm, m, fd, of_zero, is_near); };
    multicast_replica<driver> replica;
    physical_memory<driver> held;
    try {
      mine.object =
          set_up_multicast(here, how.place(comm.rank()), how.bytes, gathering(comm), share, replica, held);
    } catch (collx::error const& e) {
      mine.thrown = e.code();
    }
    mine.has_own = replica.own() != nullptr, mine.has_all = replica.all() != nullptr;
    collx::barrier(comm);
    if (comm.rank() == 0) seen(m);
    collx::barrier(comm);
    replica.undo();
    collx::barrier(comm);
    held.reset();
  });
  CHECK(m.is_empty());
  CHECK(m.wrong == std::vector<std::string>{});
  return all;
}
traits apart(rank_t r) { return {.device = r}; }
// The second and the third rank in one; the last one's GPU has the number that the second one's has
// elsewhere.
traits in_processes(rank_t r) { return {.device = r == 3 ? 1 : r, .process = (r + 1) / 2}; }
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

TEST_CASE("multicast: ranks that are processes get the object by descriptor, and bind to it alike") {
  for (rank_t const size : {2, 4}) {
    machine m;
    auto const all = set_up(m, size, in_processes, [&](machine& now) {
      std::size_t objects = 0;
      for (auto const& [id, memory] : now.memories) {
        CHECK(memory.is_shareable);
        objects += memory.is_object;
        if (!memory.is_object) continue;
        CHECK(memory.bound.size() == static_cast<std::size_t>(size));
        CHECK(memory.mappings == size);
        CHECK(memory.handles == size);  // each of these ranks has one of its own
      }
      CHECK(objects == 1);
      // A replica is reached by the devices of its process, and by no number of another one's.
      std::size_t reached = 0;
      for (auto const& [address, range] : now.ranges)
        if (!now.memories.at(range.memory).is_object) reached += range.devices.size();
      CHECK(reached == (size == 2 ? 2 : 1 + 2 + 2 + 1));
    });
    for (result const& each : all) {
      CHECK(each.object != 0);
      CHECK(each.has_own);
      CHECK(each.has_all);
    }
  }
}

TEST_CASE("multicast: whichever step fails between processes, on whichever rank, no rank has it") {
  for (char const* step : {"can_multicast", "object_unit", "unit", "create_object", "export_fd", "share",
                           "import_fd", "add_device", "create", "bind", "reserve", "map", "grant"})
    for (rank_t const who : {0, 1, 3}) {
      CAPTURE(step);
      CAPTURE(who);
      std::string const name = step;
      if (who != 0 && (name == "create_object" || name == "export_fd")) continue;  // nobody else does
      if (who == 0 && name == "import_fd") continue;
      machine m;
      m.refuses = [&](int rank, std::string const& called) { return rank == who && called == name; };
      check_that_none_has(set_up(m, 4, in_processes, look_at_nothing));
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

TEST_CASE("multicast: neither have ranks that share a GPU, are alone, or ask for nothing") {
  machine m;
  check_that_none_has(set_up(
      m, 3, [](rank_t r) { return traits{.device = r / 2}; }, look_at_nothing));
  check_that_none_has(set_up(m, 1, apart, look_at_nothing));
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
      driver const here(m, comm.rank());
      int steps = 0;
      auto const gather = [&](multicast_offer const& told) {
        auto offers = gathering(comm)(told);
        if (++steps == 4 && loses) throw collx::error(status::peer_lost, "a test");
        return offers;
      };
      auto const share = [](int) { return net::owned_fd(); };
      multicast_replica<driver> replica;
      physical_memory<driver> held;
      std::uint64_t object = 0;
      bool thrown = false;
      try {
        object =
            set_up_multicast(here, apart(comm.rank()).place(comm.rank()), unit, gather, share, replica, held);
      } catch (collx::error const& e) {
        thrown = e.code() == status::peer_lost;
      }
      CHECK(thrown == loses);
      CHECK((replica.own() == nullptr) == loses);
      CHECK((replica.all() == nullptr) == loses);
      collx::barrier(comm);
      replica.undo();
      collx::barrier(comm);
      // The maker leaves it to nobody when it loses the others.
      bool const is_left = who == 0 && comm.rank() == 1;
      if (is_left) {
        driver mutable_here = here;
        CHECK(mutable_here.release(object) == 0);
      }
    });
    CHECK(m.is_empty());
    CHECK(m.wrong == std::vector<std::string>{});
  }
}
