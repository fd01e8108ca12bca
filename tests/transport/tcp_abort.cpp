// SPDX-License-Identifier: Apache-2.0
// component: tcp
// abort() by another thread than the one that waits: it ends that wait, and all others of the world, whether
// the rank spins or sleeps.
#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collective/all_reduce.hpp"
#include "require.hpp"
#include "transport/wired.hpp"

using collx::rank_t;
using collx::status;

TEST_CASE("tcp: another thread aborts what a rank waits for") {
  constexpr std::uint64_t long_us = 60'000'000;
  for (std::uint32_t const yield_us : {0u, 1'000'000u})
    for (int round = 0; round < 50; ++round) {
      collx::transport::tcp_settings chosen;
      chosen.common.timeout_us = long_us;
      chosen.common.yield_us = yield_us;
      std::atomic<int> waiting{0};
      wired::on_wired_threads(3, chosen, [&](auto& comm) {
        std::vector<int> v(1000);
        collx::all_reduce(comm, v);  // all are connected
        std::uint64_t const began_us = collx::now_us();
        if (comm.rank() == 2) {
          while (waiting < 2) sched_yield();
          std::thread([&] { comm.abort(); }).join();
        }
        ++waiting;
        // Rank 2 makes no call before it has aborted, so that the others wait for it.
        require(collx::try_all_reduce(comm, v) == status::aborted, "not aborted");
        require(collx::now_us() - began_us < long_us / 2, "at the deadline");
      });
    }
}

TEST_CASE("tcp: a thread aborts while its own rank is in the call") {
  for (std::uint32_t const yield_us : {0u, 1'000'000u})
    for (int round = 0; round < 50; ++round) {
      collx::transport::tcp_settings chosen;
      chosen.common.timeout_us = 60'000'000;
      chosen.common.yield_us = yield_us;
      std::atomic<bool> is_over{false};
      wired::on_wired_threads(2, chosen, [&](auto& comm) {
        std::vector<int> v(100'000);
        collx::all_reduce(comm, v);
        if (comm.rank() == 1) {
          while (!is_over) sched_yield();  // makes no call that rank 0 could wait for
          return;
        }
        std::atomic<bool> begins{false};
        std::thread other([&] {
          while (!begins) sched_yield();
          for (int i = 0; i < 50 * round; ++i) sched_yield();  // it is somewhere in it
          comm.abort();
        });
        begins = true;
        status const outcome = collx::try_all_reduce(comm, v);
        other.join();
        is_over = true;
        require(outcome == status::aborted, "not aborted");
      });
    }
}
