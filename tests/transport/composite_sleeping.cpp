// SPDX-License-Identifier: Apache-2.0
// A rank that waits long for a peer of its own host, or of another one, sleeps: it costs its processor
// little, and misses nothing.
// component: tcp
// thread sanitizer: no, each rank is a process of one thread
#include <algorithm>
#include <vector>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <time.h>

#include "collx/collx.hpp"
#include "transport/pretended_hosts.hpp"
#include "watchdog.hpp"

namespace {

using collx::rank_t;
using communicator = collx::communicator<pretended::shm_and_tcp>;

constexpr std::uint64_t slower = COLLX_SANITIZED ? 10 : 1;

std::uint64_t own_processor_us() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  auto const us = [](timeval const& t) {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(t.tv_usec);
  };
  return us(used.ru_utime) + us(used.ru_stime);
}

collx::transport::tcp_settings settings_of(std::uint32_t yield_us) {
  collx::transport::tcp_settings chosen;
  chosen.common = {.timeout_us = 60'000'000, .staging_bytes = 64 * 1024, .yield_us = yield_us};
  return chosen;
}

}  // namespace

TEST_CASE("composite: who waits a second for a peer here, or elsewhere, uses a tenth of it at most") {
  constexpr rank_t late = 1;
  auto const codes = pretended::on_hosts(
      {0, 0, 1, 1},
      [&](communicator& world) {
        watchdog dog;
        auto const watched = dog.watch(world);
        int value = 0;
        collx::barrier(world);
        if (world.rank() == late) {
          timespec const second{1, 0};
          nanosleep(&second, nullptr);  // what is measured is how the others wait
          for (rank_t const r : {0, 2, 3}) collx::send(world, std::span<int const>(&value, 1), r);
          return 0;
        }
        std::uint64_t const began_us = collx::now_us(), before = own_processor_us();
        collx::receive(world, std::span(&value, 1), late);
        std::uint64_t const used_us = own_processor_us() - before;
        // Who came late waits for less than the second; where the processor is another's for long, for more.
        std::uint64_t const waited_us = std::max<std::uint64_t>(collx::now_us() - began_us, 1'000'000);
        return used_us < waited_us / 10 * slower ? 0 : 8 + world.rank();
      },
      settings_of(200));
  for (int const code : codes) CHECK(code == 0);
}

TEST_CASE("composite: ranks that sleep at once miss nothing") {
  auto const codes = pretended::on_hosts(
      {0, 1, 0, 1, 2},
      [&](communicator& world) {
        watchdog dog;
        auto const watched = dog.watch(world);
        for (int round = 0; round < 100; ++round) {
          // One at a time is late, so that all others fall asleep, for peers of either kind.
          for (int i = 0; world.rank() == round % world.size() && i < 200; ++i) sched_yield();
          std::vector<int> values(round % 3 == 0 ? 1 : 20'000, world.rank() + round);
          collx::all_reduce<collx::algo::ring>(world, values);
          int const sum = world.size() * (world.size() - 1) / 2 + round * world.size();
          if (values.front() != sum || values.back() != sum) return 1;
        }
        return 0;
      },
      settings_of(0));
  for (int const code : codes) CHECK(code == 0);
}
