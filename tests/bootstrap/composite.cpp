// SPDX-License-Identifier: Apache-2.0
// connect<composite<shm, tcp>>() of ranks of one host that cannot share memory, as those of containers that
// have a network in common cannot: they talk over TCP.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include "collx/bootstrap/composite.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "bootstrap/folder.hpp"
#include "collx/collx.hpp"
#include "contained.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using shm_and_tcp = collx::transport::composite<collx::transport::shm, collx::transport::tcp>;

// The whole of a rank of two: an exit code. `near`: how many it is to share memory with, itself among them.
int sum_of_two(rank_t rank, std::string const& file, rank_t near) {
  std::string const place = "file:" + file;
  collx::bootstrap::launch me;
  me.rank = rank;
  me.size = 2;
  me.rendezvous = place.c_str();
  try {
    collx::transport::tcp_settings chosen;
    chosen.common.heap_bytes = 1 << 20;
    auto world = collx::bootstrap::start_of<shm_and_tcp>::connect(chosen, me);
    watched::rank_of_process const here(world);
    std::vector<int> values(10'000, rank + 1);
    collx::all_reduce(world, values);
    if (values != std::vector<int>(values.size(), 3)) return 2;
    return world.engine().endpoint().space().near().size() == near ? 0 : 3;
  } catch (std::exception const& failure) {
    std::fprintf(stderr, "rank %d: %s\n", rank, failure.what());
    return 1;
  }
}

}  // namespace

TEST_CASE("composite: ranks of one host share memory") {
  folder const place;
  contained zero(0, [&] { return sum_of_two(0, place.at("meet"), 2); });
  contained one(0, [&] { return sum_of_two(1, place.at("meet"), 2); });
  CHECK(zero.ended() == 0);
  CHECK(one.ended() == 0);
}

TEST_CASE("composite: ranks in containers that have numbers of processes of their own talk over TCP") {
  folder const place;
  contained zero(CLONE_NEWPID, [&] { return sum_of_two(0, place.at("meet"), 1); });
  contained one(CLONE_NEWPID, [&] { return sum_of_two(1, place.at("meet"), 1); });
  check_contained(zero.ended());
  check_contained(one.ended());
}

TEST_CASE("composite: ranks that do not see each other's folder of temporary files talk over TCP") {
  folder const place, elsewhere;
  contained zero(0, [&] { return sum_of_two(0, place.at("meet"), 1); });
  contained one(0, [&] {
    setenv("TMPDIR", elsewhere.path().c_str(), 1);
    return sum_of_two(1, place.at("meet"), 1);
  });
  CHECK(zero.ended() == 0);
  CHECK(one.ended() == 0);
}
