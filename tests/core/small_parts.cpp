// SPDX-License-Identifier: Apache-2.0
// array, atomic_word, replayable_random and the clock.
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/array.hpp"
#include "collx/core/atomic_word.hpp"
#include "collx/core/clock.hpp"
#include "collx/core/random.hpp"

TEST_CASE("array: value-initialised, sized once, moved but not copied") {
  collx::array<int> a(5);
  for (int const x : a) CHECK(x == 0);
  a[3] = 7;
  collx::array<int> b = std::move(a);
  CHECK(b.size() == 5);
  CHECK(b[3] == 7);
  CHECK(a.size() == 0);
  CHECK(a.begin() == a.end());
  collx::array<int> c;
  c = std::move(b);
  CHECK(c[3] == 7);
  CHECK(collx::array<int>(0).data() == nullptr);
  static_assert(!std::is_copy_constructible_v<collx::array<int>>);
}

TEST_CASE("array: has new elements after a reset, and destroys those that it had") {
  auto const shared = std::make_shared<int>(1);
  collx::array<std::shared_ptr<int>> a;
  a.reset(2);
  a[0] = a[1] = shared;
  CHECK(shared.use_count() == 3);
  a.reset(3);
  CHECK(shared.use_count() == 1);
  CHECK(a.size() == 3);
  for (auto const& each : a) CHECK(each == nullptr);
  a.reset(0);
  CHECK(a.data() == nullptr);
}

TEST_CASE("array: destroys what it holds") {
  auto const shared = std::make_shared<int>(1);
  {
    collx::array<std::shared_ptr<int>> a(3), b(1);
    for (auto& each : a) each = shared;
    b = std::move(a);
    CHECK(shared.use_count() == 4);
  }
  CHECK(shared.use_count() == 1);
}

TEST_CASE("atomic_word: what std::atomic does, in as much memory") {
  static_assert(sizeof(collx::atomic_word<std::uint64_t>) == 8);
  static_assert(alignof(collx::atomic_word<std::uint64_t>) == alignof(std::atomic<std::uint64_t>));
  constexpr auto order = std::memory_order_acq_rel;
  collx::atomic_word<std::int32_t> word;
  CHECK(word.load() == 0);
  word.store(5, std::memory_order_release);
  CHECK(word.exchange(6, order) == 5);
  CHECK(word.fetch_add(4, order) == 6);
  CHECK(word.fetch_sub(1, order) == 10);
  CHECK(word.fetch_or(16, order) == 9);
  std::int32_t expected = 24;
  CHECK(!word.compare_exchange_strong(expected, 1, order, std::memory_order_relaxed));
  CHECK(expected == 25);
  CHECK(word.compare_exchange_strong(expected, 1, order, std::memory_order_relaxed));
  CHECK(word.load(std::memory_order_acquire) == 1);
}

TEST_CASE("random numbers replay, and are those of SplitMix64") {
  collx::replayable_random a(42), b(42), c(43);
  std::uint64_t const first = a.next();
  CHECK(first == b.next());
  CHECK(first != c.next());
  // The reference implementation's first output for seed 0.
  CHECK(collx::replayable_random(0).next() == 0xe220a8397b1dcdafULL);
}

TEST_CASE("random numbers below a bound stay below it and reach all of it") {
  collx::replayable_random random(1);
  std::vector<int> seen(7);
  for (int i = 0; i < 7000; ++i) ++seen[random.below(7)];
  for (int const times : seen) CHECK(times > 800);
  CHECK(random.below(1) == 0);
}

TEST_CASE("the clock does not run backwards") {
  std::uint64_t last = collx::now_us();
  for (int i = 0; i < 1000; ++i) {
    std::uint64_t const now = collx::now_us();
    REQUIRE(now >= last);
    last = now;
    collx::relax();
  }
}

TEST_CASE("clock: a deadline far away is not one in the past") {
  std::uint64_t const now = collx::now_us();
  CHECK(collx::deadline_in(1'000'000) >= now + 1'000'000);
  CHECK(collx::deadline_in(1'000'000) < now + 60'000'000);
  for (std::uint64_t const patience_us : {UINT64_MAX, UINT64_MAX - now, std::uint64_t{1} << 63}) {
    CHECK(collx::deadline_in(patience_us) > now + (std::uint64_t{1} << 61));
    CHECK(collx::deadline_in(patience_us) + (std::uint64_t{1} << 61) >
          now);  // what is added does not wrap either
  }
}
