// SPDX-License-Identifier: Apache-2.0
// A rank that cannot join gives back all that it had taken, whichever allocation fails; and those that have
// joined do not wait for it.
// component: tcp
// sanitizers: no, it replaces operator new itself
// compiled: apart, it replaces operator new
#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "collx/bootstrap/mailbox.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/split.hpp"
#include "require.hpp"
#include "scarce_memory.hpp"
#include "shared_with_forks.hpp"
#include "transport/pretended_hosts.hpp"
#include "transport/unable.hpp"
#include "transport/wired.hpp"

namespace {

using collx::rank_t;
using collx::status;
using collx::transport::shm;
using collx::transport::tcp;

int count_open() {
  int count = 0;
  for (int fd = 0; fd < 300; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

// So large that one more stands out among what else a process maps. It is not touched.
collx::transport::settings const large{.staging_bytes = std::size_t{1} << 20,
                                       .heap_bytes = std::size_t{256} << 20};

// Of the address space of this process.
std::size_t mapped_bytes() {
  unsigned long pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  REQUIRE(file != nullptr);
  int const read = std::fscanf(file, "%lu", &pages);
  std::fclose(file);
  REQUIRE(read == 1);
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

collx::net::owned_fd segment_of(rank_t size) {
  return collx::net::owned_fd(collx::transport::shared_memory::segment::create(size, large));
}

// Calls join(), of which each allocation fails once, until there are enough. Returns how many there were.
template <class Join>
int refuse_each(Join const& join) {
  join();  // what libraries take once
  int const open = count_open();
  std::size_t const mapped = mapped_bytes();
  for (int allocations = 0; allocations < 1000; ++allocations) {
    CAPTURE(allocations);
    bool refused = false;
    long const taken = scarce_memory::in_use;
    try {
      scarce_memory::allowance const few(allocations);
      join();
    } catch (std::bad_alloc const&) {
      refused = true;
    } catch (collx::error const& failure) {
      CHECK(failure.code() == status::out_of_memory);
      refused = true;
    }
    CHECK(scarce_memory::in_use - taken == 0);
    CHECK(count_open() == open);
    CHECK(mapped_bytes() < mapped + large.heap_bytes / 2);
    if (!refused) return allocations;
  }
  FAIL("no end");
  return 0;
}

// Whether a barrier ends because rank 1 has given up, and long before the deadline.
template <class World>
int ends_with_rank_1(World& world) {
  std::uint64_t const begun_us = collx::now_us();
  try {
    collx::barrier(world);
  } catch (collx::error const& failure) {
    bool const is_told = failure.code() == status::aborted && failure.report().reported_by == 1;
    return !is_told ? 3 : collx::now_us() - begun_us > world.timeout_us() / 2 ? 4 : 0;
  }
  return 5;
}

}  // namespace

TEST_CASE("shm: whichever allocation fails as a rank joins, all is given back") {
  collx::net::owned_fd segment;
  int const needed = refuse_each([&] {
    segment = segment_of(1);  // a rank joins it once
    (void)shm::join(segment.get(), 0);
  });
  CHECK(needed > 10);
}

TEST_CASE("tcp: whichever allocation fails as a rank joins, all is given back") {
  watchdog dog;
  int const needed = refuse_each([] {
    int const mine = std::exchange(scarce_memory::until_none_is_left, -1);
    wired::cables all(1);
    scarce_memory::until_none_is_left = mine;
    (void)tcp::join(0, 1, {}, all[0]);
  });
  CHECK(needed > 10);
}

TEST_CASE("composite: whichever allocation fails as a rank joins, both its worlds are given back") {
  watchdog dog;
  collx::net::owned_fd segment;
  int const needed = refuse_each([&] {
    int const mine = std::exchange(scarce_memory::until_none_is_left, -1);
    segment = segment_of(1);
    wired::cables all(1);
    auto* const near = new collx::transport::shm_world(segment.get(), 0);
    auto* const far = new collx::transport::tcp_world(0, 1, {}, all[0]);
    collx::array<std::uint64_t> const hosts(1);
    scarce_memory::until_none_is_left = mine;
    (void)pretended::shm_and_tcp::join(near, far, hosts);
  });
  CHECK(needed > 10);
}

TEST_CASE("mailbox: whichever allocation fails as ranks are made, all is given back") {
  CHECK(refuse_each([] { collx::bootstrap::mailbox_ranks<> const ranks(3, 1); }) > 3 * 10);
}

// Those that have theirs go on with the world, which refers to nothing of what failed.
TEST_CASE("tcp: whichever allocation of a split fails, the world goes on") {
  std::atomic<int> refused{0};  // relaxed: read when the threads have been joined
  wired::on_wired_threads(2, {}, [&](collx::communicator<tcp>& world) {
    collx::barrier(world);  // connections stand
    int enough = 0;
    for (int allocations = 0; enough == 0; ++allocations) {
      require(allocations < 1000, "no end");
      std::optional<collx::communicator<tcp>> group;
      // Who has no memory for a list of the ranks has told nobody, and splits again.
      bool is_refused = false;
      for (int limit = world.rank() == 1 ? allocations : -1; !group; limit = -1) {
        try {
          scarce_memory::allowance const few(limit);
          group.emplace(world.split(0, 0));
        } catch (collx::error const& failure) {
          require(failure.code() == status::out_of_memory, failure.what());
          is_refused = true;
          if (std::strstr(failure.what(), "split again") == nullptr) break;
        }
      }
      enough = !is_refused;
      refused.fetch_add(is_refused, std::memory_order_relaxed);
      collx::broadcast(world, std::span(&enough, 1), 1);
    }
  });
  CHECK(refused.load(std::memory_order_relaxed) > 10);
}

// Two processes make a second world, for which rank 1 has no memory, and live on.
TEST_CASE("shm: the others do not wait for a rank that has no memory to join") {
  collx::net::owned_fd const second = segment_of(2);
  auto const codes = watched::on_processes(2, [&](collx::communicator<shm>& first) {
    int outcome = 2;
    if (first.rank() == 0) {
      auto world = shm::join(second.get(), 0);
      outcome = ends_with_rank_1(world);
    } else {
      try {
        (void)shm::join<unable<shm>>(second.get(), 1);
      } catch (std::bad_alloc const&) {
        outcome = 0;
      }
    }
    collx::barrier(first);
    return outcome;
  });
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("tcp: the others do not wait for a rank that has no memory to join") {
  collx::transport::tcp_settings const chosen;
  collx::bootstrap::detail::loopback_doors doors(2, chosen);
  shared_with_forks<arrivals> joined;  // who fails waits a second only for the other to be told
  auto const codes = watched::on_processes(2, [&](collx::communicator<shm>& first) {
    auto* const mine =
        new collx::transport::tcp_world(first.rank(), 2, chosen, doors.connector_of(first.rank()));
    int outcome = 2;
    if (first.rank() == 0) {
      auto world = tcp::join(mine);
      joined->come();
      outcome = ends_with_rank_1(world);
    } else {
      joined->wait_for(1);
      try {
        (void)tcp::join<unable<tcp>>(mine);
      } catch (std::bad_alloc const&) {
        outcome = 0;
      }
    }
    collx::barrier(first);
    return outcome;
  });
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("composite: the others do not wait for a rank that has no memory to join") {
  using pretended::shm_and_tcp;
  collx::transport::tcp_settings const chosen;
  collx::bootstrap::detail::loopback_doors doors(2, chosen);
  collx::net::owned_fd const second = segment_of(2);
  shared_with_forks<arrivals> joined;
  auto const codes = watched::on_processes(2, [&](collx::communicator<shm>& first) {
    rank_t const rank = first.rank();
    auto* const near = new collx::transport::shm_world(second.get(), rank);
    auto* const far = new collx::transport::tcp_world(rank, 2, chosen, doors.connector_of(rank));
    collx::array<std::uint64_t> const hosts(2);
    int outcome = 2;
    if (rank == 0) {
      auto world = shm_and_tcp::join(near, far, hosts);
      joined->come();
      outcome = ends_with_rank_1(world);
    } else {
      joined->wait_for(1);
      try {
        (void)shm_and_tcp::join<unable<shm_and_tcp>>(near, far, hosts);
      } catch (std::bad_alloc const&) {
        outcome = 0;
      }
    }
    collx::barrier(first);
    return outcome;
  });
  for (int const code : codes) CHECK(code == 0);
}
