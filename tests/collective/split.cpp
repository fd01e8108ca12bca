// SPDX-License-Identifier: Apache-2.0
// Groups split off a communicator: who is in them and in which order, groups of groups, groups used
// at the same time, and what they leave behind.
#include <new>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "meeting.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::status;

// The world ranks of a group, in its order, as its members tell each other.
template <class Transport>
std::vector<rank_t> members(collx::communicator<Transport>& group, rank_t my_world_rank) {
  std::vector<rank_t> all(static_cast<std::size_t>(group.size()));
  collx::all_gather(group, std::span<rank_t const>(&my_world_rank, 1), all);
  return all;
}

// The same test of splitting on both kinds of ranks.
void check_splits(auto& world) {
  rank_t const me = world.rank(), n = world.size();
  auto const same = world.split(0, 0);
  require(same.rank() == me && same.size() == n, "one color keeps everything");

  auto backwards = world.split(5, n - me);
  require(backwards.rank() == n - 1 - me, "keys order");

  auto odd = world.split(me % 2, 0);
  std::vector<rank_t> expected;
  for (rank_t r = me % 2; r < n; r += 2) expected.push_back(r);
  require(members(odd, me) == expected, "equal keys keep the order");

  auto alone = world.split(me - 100, 7);
  require(alone.size() == 1 && alone.rank() == 0, "alone, with a negative color");
  std::vector<int> mine{me};
  collx::all_reduce(alone, mine);
  require(mine[0] == me, "sum of one");

  // A group of a group, used together with both.
  auto quarter = odd.split(odd.rank() / 2, -odd.rank());
  std::vector<int> a(1000, 1), b(1000, 1), c(1000, 1);
  auto first = collx::start::all_reduce<collx::algo::ring>(world, a);
  auto second = collx::start::all_reduce<collx::algo::ring>(odd, b);
  collx::all_reduce(quarter, c);
  second.wait();
  first.wait();
  require(a == std::vector<int>(1000, n), "world");
  require(b == std::vector<int>(1000, odd.size()), "group");
  require(c == std::vector<int>(1000, quarter.size()), "group of a group");
}

void check_many(auto& world) {
  for (int round = 0; round < 50; ++round) {
    auto group = world.split((world.rank() + round) % 2, world.rank());
    std::vector<int> v(200, 1);
    collx::all_reduce(group, v);
    require(v == std::vector<int>(200, group.size()), "round " + std::to_string(round));
    auto const buffer = group.template allocate<int>(1000);
    collx::broadcast(group, buffer);
    // The group ends here, on this rank: others may still be in the middle of the broadcast.
  }
}

// As threads, but rank 1 of the world has no memory for its part of a group that is not its alone.
struct threads_of_little_memory {
  using world = collx::transport::threads::world;
  using endpoint = collx::transport::threads::endpoint;
  using generous = collx::transport::threads::membership_of<threads_of_little_memory>;
  struct membership : generous {
    [[nodiscard]] static reservation reserve(engine_type& parent, rank_t my_rank, rank_t count) {
      if (parent.endpoint().rank() == 1 && count > 1) throw std::bad_alloc();
      return generous::reserve(parent, my_rank, count);
    }
  };
};

// Whether there is no such group, since rank 1 has no memory for its part.
bool lacks_memory(auto& comm, std::int32_t color) {
  try {
    (void)comm.split(color, 0);
  } catch (collx::error const& error) {
    require(error.code() == status::out_of_memory, error.what());
    require(std::string(error.what()).find("rank 1 has no memory left") != std::string::npos, error.what());
    return true;
  }
  return false;
}

constexpr collx::transport::settings small{.staging_bytes = 64 * 1024, .heap_bytes = std::size_t{64} << 20};

}  // namespace

TEST_CASE("threads: groups of every kind") {
  for (rank_t const size : {1, 2, 3, 4, 7}) {
    watched::on_threads(size, [](auto& world) { check_splits(world); });
  }
}

TEST_CASE("shm: groups of every kind") {
  for (rank_t const size : {1, 2, 3, 4, 7})
    for (int const code : watched::on_processes(
             size, [](auto& world) { check_splits(world); }, small))
      CHECK(code == 0);
}

TEST_CASE("threads: many groups, one after the other") {
  watched::on_threads(
      4, [](auto& world) { check_many(world); }, small);
}

TEST_CASE("shm: many groups, one after the other, out of little symmetric memory") {
  for (int const code : watched::on_processes(
           4, [](auto& world) { check_many(world); }, small))
    CHECK(code == 0);
}

TEST_CASE("a group inherits the deadline, and an abort of the world reaches it") {
  meeting after_split(2);
  watched::on_threads(2, [&](auto& world) {
    world.timeout_us(37'000'000);
    auto group = world.split(0, 0);
    require(group.timeout_us() == 37'000'000, "timeout");
    after_split.attend(world);
    if (world.rank() == 0) return world.abort();
    std::vector<int> v(10);
    require(collx::try_all_reduce(group, v) == status::aborted, "aborted");
  });
}

TEST_CASE("a failure in a group names ranks of the group") {
  meeting after_split(3);
  watched::on_threads(3, [&](auto& world) {
    // Ranks 2 and 1 of the world are ranks 0 and 1 of the group.
    auto group = world.split(world.rank() != 0, -world.rank());
    after_split.attend(world);
    group.timeout_us(30'000);
    if (world.rank() != 2) return;
    std::vector<int> v(10);
    require(collx::try_all_reduce(group, v) == status::timeout, "timeout");
    require(group.failure().rank == 0 && group.failure().peer == 1, "ranks of the group");
  });
}

TEST_CASE("shm: a group for which one rank has no memory fails on all its members, and takes none") {
  collx::transport::settings chosen;
  chosen.heap_bytes = 4 << 20;
  chosen.staging_bytes = 1 << 16;
  auto const codes = watched::on_processes(
      3,
      [](auto& comm) {
        for (int round = 0; round < 20; ++round) {
          auto most = comm.template allocate<std::byte>(comm.rank() == 1 ? (4 << 20) - (64 << 10) : 1);
          require(lacks_memory(comm, 0), "one for all");
          require(lacks_memory(comm, comm.rank() == 2) == (comm.rank() != 2),
                  "one for two, and one for the third");
        }
        require(comm.failure().code == status::ok, "the communicator failed");
        auto const group = comm.split(0, 0);
        require(group.size() == 3, "memory again");
        return 0;
      },
      chosen);
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("a rank that cannot allocate its part of a group says so to all members") {
  watched::on_threads<threads_of_little_memory>(3, [](auto& comm) {
    require(lacks_memory(comm, 0), "one for all");
    require(lacks_memory(comm, comm.rank() == 2) == (comm.rank() != 2), "one for two, and one for the third");
    auto alone = comm.split(comm.rank(), 0);
    require(alone.size() == 1 && comm.failure().code == status::ok, "the communicator failed");
  });
}
