// SPDX-License-Identifier: Apache-2.0
// A rank that waits in a group of its own host belongs to a world of several: it hears what those elsewhere
// have to say, and answers them.
// component: tcp
// ctest: LABELS waits
// thread sanitizer: no, each rank is a process of one thread
#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "shared_with_forks.hpp"
#include "transport/pretended_hosts.hpp"

namespace {

using communicator = collx::communicator<pretended::shm_and_tcp>;
using collx::rank_t;
using collx::status;

// What became of a rank's wait, and whether it is over.
struct outcome {
  std::atomic<bool> is_over{false};
  status code = status::ok;
  rank_t blamed = collx::no_rank;

  template <class Call>
  void record(Call const& call) {
    try {
      call();
    } catch (collx::error const& failed) {
      code = failed.code();
      blamed = failed.report().peer;
    }
    is_over = true;
  }
};

// Ranks 0 and 1 share a host and a group, rank 2 is elsewhere. All have met, and are connected.
communicator part_of(communicator& world) {
  collx::barrier(world);
  auto part = world.split(world.rank() == 2, world.rank());
  collx::barrier(part);
  collx::barrier(world);
  return part;
}

void check_ended(collx::bootstrap::exit_codes const& codes) {
  for (int const code : codes) CHECK(code == 0);
}

}  // namespace

TEST_CASE("composite: who waits in a group of its host hears at once that a rank elsewhere has failed") {
  constexpr std::uint64_t deadline_us = 60'000'000;
  shared_with_forks<outcome> zero;
  collx::transport::tcp_settings chosen;
  for (std::uint32_t const yield_us : {200u, 20'000'000u}) {  // asleep by then, and awake
    CAPTURE(yield_us);
    new (&*zero) outcome;
    chosen.common = {.timeout_us = deadline_us,
                     .staging_bytes = 4096,
                     .heap_bytes = std::size_t{1} << 20,
                     .yield_us = yield_us};
    check_ended(pretended::on_hosts(
        {1, 1, 2},
        [&](communicator& world) {
          auto part = part_of(world);
          std::uint64_t const began_us = collx::now_us();
          if (world.rank() == 0) zero->record([&] { collx::barrier(part); });
          if (world.rank() == 2) {
            poll(nullptr, 0, 100);  // until rank 0 waits; whenever it does, it has to hear
            world.abort();
          }
          // Rank 1 does nothing of the library's, and comes never.
          while (!zero->is_over && collx::now_us() - began_us < deadline_us / 2) sched_yield();
          return zero->is_over ? 0 : 2;
        },
        chosen));
    CHECK(zero->code == status::aborted);
  }
}

TEST_CASE("composite: who waits in a group of its host tells ranks elsewhere whom it waits for") {
  shared_with_forks<outcome> two;
  collx::transport::tcp_settings chosen;
  // Rank 0 is asked eight times within it: one that the machine holds up for as long as that is blamed
  // itself.
  chosen.common = {.timeout_us = 12'000'000, .staging_bytes = 4096, .heap_bytes = std::size_t{1} << 20};
  check_ended(pretended::on_hosts(
      {1, 1, 2},
      [&](communicator& world) {
        auto part = part_of(world);
        part.timeout_us(60'000'000);
        int value = 0;
        if (world.rank() == 0 && collx::try_barrier(part) == status::ok) return 2;
        if (world.rank() == 2) two->record([&] { collx::broadcast(world, std::span(&value, 1), 0); });
        // Rank 1 is stuck.
        while (world.rank() == 1 && !two->is_over) sched_yield();
        return 0;
      },
      chosen));
  CHECK(two->code == status::timeout);
  CHECK(two->blamed == 1);
}
