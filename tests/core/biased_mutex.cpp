// SPDX-License-Identifier: Apache-2.0
// A lock that costs its first thread little: one thread at a time has it, whoever comes when.
#include "collx/core/biased_mutex.hpp"

#include <sched.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "watchdog.hpp"

using collx::biased_mutex, collx::posix_lock;

TEST_CASE("biased mutex: only a second thread makes it one for several") {
  if (!collx::join_fences()) {
    MESSAGE("SKIPPED: this system offers no fences");
    return;
  }
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

// This thread gets its processor before all with a lower one do; false: the system does not let it.
static bool take_priority(int priority) {
  sched_param const wanted{priority};
  return pthread_setschedparam(pthread_self(), SCHED_FIFO, &wanted) == 0;
}

TEST_CASE("biased mutex: a second thread of higher real-time priority lets the first one get out") {
  watchdog dog;
  bool has_run = false;
  std::thread([&] {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &here);
    if (pthread_setaffinity_np(pthread_self(), sizeof here, &here) != 0 || !take_priority(1)) return;
    biased_mutex mutex;
    mutex.lock();
    std::thread second([&] {  // on the same processor
      if (!take_priority(2)) return;
      posix_lock const held(mutex);
      has_run = true;
    });
    for (int i = 0; i < 10; ++i) sched_yield();
    mutex.unlock();
    second.join();
  }).join();
  if (!has_run) MESSAGE("SKIPPED: it takes the right to real-time priority");
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

// Without the fence the second thread would look before the first one's word can be seen: that waits behind
// stores whose lines must come from memory. (Only where it is optimised: see atomic_word.hpp.)
TEST_CASE("biased mutex: a second thread sees the first one enter, however late its stores come out") {
  watchdog dog;
  constexpr int rounds = 500;
  constexpr std::size_t line = 64, lines = 1 << 16;
  std::vector<char> cold(lines * line);
  std::unique_ptr<biased_mutex> mutex;
  std::atomic<int> round{0}, met{0}, inside{0}, overlaps{0};
  std::thread second([&] {
    for (int r = 1; r <= rounds; ++r) {
      while (round.load(std::memory_order_acquire) != r) {
      }
      for (int i = r % 50; i != 0; --i) std::atomic_signal_fence(std::memory_order_seq_cst);
      posix_lock const held(*mutex);
      // Relaxed, all: any other order would be a fence that the lock lacks.
      inside.store(2, std::memory_order_relaxed);
      for (int i = 0; i < 2000; ++i)
        if (inside.load(std::memory_order_relaxed) != 2) {
          overlaps.fetch_add(1, std::memory_order_relaxed);
          break;
        }
      inside.store(0, std::memory_order_relaxed);
      met.store(r, std::memory_order_relaxed);
    }
  });
  std::uint32_t random = 1;
  for (int r = 1; r <= rounds; ++r) {
    mutex = std::make_unique<biased_mutex>();
    { posix_lock const first(*mutex); }
    round.store(r, std::memory_order_release);
    while (met.load(std::memory_order_relaxed) != r) {
      for (int i = 0; i < 30; ++i) {
        random = random * 1664525 + 1013904223;
        cold[(random >> 10) % lines * line] = 1;
      }
      posix_lock const held(*mutex);
      inside.store(1, std::memory_order_relaxed);
      inside.store(0, std::memory_order_relaxed);
    }
    posix_lock const second_has_left(*mutex);
  }
  second.join();
  CHECK(overlaps == 0);
}
