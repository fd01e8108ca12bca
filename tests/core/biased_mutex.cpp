// SPDX-License-Identifier: Apache-2.0
// A lock that costs its first thread little: one thread at a time has it, whoever comes when.
#include "collx/core/biased_mutex.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "watchdog.hpp"

using collx::biased_mutex, collx::posix_lock;

TEST_CASE("biased mutex: only a second thread makes it one for several") {
  if (!collx::join_fences()) return;
  watchdog dog;
  biased_mutex mutex;
  for (int i = 0; i < 3; ++i) posix_lock const held(mutex);
  CHECK_FALSE(mutex.is_shared());
  std::thread([&] { posix_lock const held(mutex); }).join();
  CHECK(mutex.is_shared());
  posix_lock const held(mutex);
}

TEST_CASE("biased mutex: a second thread waits until the first one is out") {
  watchdog dog;
  for (int round = 0; round < 200; ++round) {
    biased_mutex mutex;
    std::atomic<bool> comes{false};
    int guarded = 0;
    mutex.lock();
    std::thread second([&] {
      comes = true;
      posix_lock const held(mutex);
      CHECK(guarded == 1);
      guarded = 2;
    });
    while (!comes) sched_yield();
    for (int i = 0; i < 10; ++i) sched_yield();
    CHECK(guarded == 0);
    guarded = 1;
    mutex.unlock();
    second.join();
    posix_lock const held(mutex);
    CHECK(guarded == 2);
  }
}

TEST_CASE("biased mutex: one thread at a time, while others come") {
  watchdog dog;
  constexpr int rounds = 100, threads = 3, each = 2000;
  for (int round = 0; round < rounds; ++round) {
    biased_mutex mutex;
    std::atomic<bool> begins{false};
    long guarded = 0;  // no atomic: the lock is what orders it
    auto const count = [&] {
      for (int i = 0; i < each; ++i) {
        posix_lock const held(mutex);
        ++guarded;
        if (i == 10) begins = true;
      }
    };
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i)
      all.emplace_back([&, i] {
        while (i != 0 && !begins) sched_yield();  // the first one is in the middle of it
        count();
      });
    for (std::thread& t : all) t.join();
    CHECK(guarded == long{threads} * each);
  }
}
