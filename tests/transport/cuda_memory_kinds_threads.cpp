// SPDX-License-Identifier: Apache-2.0
// The guarantees of memory_kinds.hpp under threads. Checked: whatever others allocate and free, an answer was
// true at some moment of its question. Told: what is said of memory of one's own is true.
#include <algorithm>
#include <thread>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "transport/fake_memory.hpp"

namespace {

using namespace collx;
using namespace collx::transport::cuda_parts;
using fake_memory::address_of;
using fake_memory::pointer_to;
using fake_memory::unit;

constexpr std::size_t unit_count = 6;
constexpr int questions_count = 20000;

struct question {
  std::uintptr_t address;
  std::uint64_t began, ended;  // in events of the space
  memory_answer answer;
};

// Whether something lay at the address all the time from `began` to `ended`.
bool always_taken(std::vector<fake_memory::space::life> const& lives, question const& q) {
  return std::ranges::any_of(lives, [&](auto const& life) {
    return life.place.contains(q.address) && life.born <= q.began && life.died > q.ended;
  });
}

bool was_true(std::vector<fake_memory::space::life> const& lives, question const& q) {
  memory_place const& place = q.answer.place;
  // Freed and allocated more often than find() tries: it says that it cannot tell.
  if (q.answer.code == status::bad_argument && place == memory_place{}) return true;
  if (q.answer.code != status::ok) return false;
  if (place.kind == place_kind::host) return place == memory_place{} && !always_taken(lives, q);
  auto const& life = lives.at(place.id - 1);
  return life.place == place && place.contains(q.address) && life.born <= q.ended && life.died > q.began;
}

std::vector<question> ask_at_random(fake_memory::space& space, fake_memory::kinds& kinds,
                                    std::uint64_t seed) {
  replayable_random random(seed);
  std::vector<question> asked;
  asked.reserve(questions_count);
  for (int i = 0; i < questions_count; ++i) {
    std::uintptr_t const address = address_of(random.below(unit_count)) + random.below(unit);
    std::uint64_t const began = space.now();
    memory_answer const answer = kinds.find(pointer_to(address), 1);
    asked.push_back({address, began, space.now(), answer});
  }
  return asked;
}

place_kind some_kind(replayable_random& random) { return static_cast<place_kind>(1 + random.below(3)); }

}  // namespace

TEST_CASE("a record is read as it was written at once, or not at all") {
  place_record record;
  auto const of_number = [](std::uint64_t n) {
    return memory_place{static_cast<place_kind>(n % 4), static_cast<int>(n), n + 1, n + 2, n + 3};
  };
  record.write(of_number(0));
  std::atomic<bool> reading{true};
  std::uint64_t torn = 0;
  // Neither thread yields: one that gives up the processor between two writes hides what this is looking for.
  std::thread reader([&] {
    for (int i = 0; i < 3'000'000; ++i) {
      memory_place place;
      if (record.read(place) && place != of_number(place.base - 1)) ++torn;
    }
    reading = false;
  });
  std::uint64_t last = 0;
  while (reading) record.write(of_number(++last));
  reader.join();
  CHECK(torn == 0);
  memory_place place;
  CHECK(record.read(place));
  CHECK(place == of_number(last));
}

TEST_CASE("checked: two threads ask while a third frees and allocates") {
  for (std::size_t const capacity : {1u, 4u}) {
    fake_memory::space space;
    fake_memory::kinds kinds(fake_memory::driver{&space}, capacity);
    std::atomic<int> asking{2};
    std::vector<question> asked[2];
    std::thread askers[2];
    for (std::size_t i = 0; i < 2; ++i)
      askers[i] = std::thread([&, i] {
        asked[i] = ask_at_random(space, kinds, i);
        --asking;
      });
    // Ends with the questions. Half of the steps change nothing, so that something stays for a while.
    replayable_random random(7);
    while (asking != 0) {
      std::size_t const at = random.below(unit_count);
      if (space.begins_at(address_of(at))) space.release(address_of(at));
      else space.allocate(address_of(at), unit * (1 + random.below(3)), some_kind(random), 0);
      for (std::uint32_t pause = random.below(50); pause != 0; --pause) std::this_thread::yield();
    }
    for (std::thread& t : askers) t.join();
    for (auto const& questions : asked) {
      REQUIRE(questions.size() == questions_count);
      std::size_t wrong = 0;
      for (question const& q : questions) wrong += !was_true(space.lives(), q);
      CHECK(wrong == 0);
    }
    for (std::size_t at = 0; at < unit_count; ++at)
      CHECK(kinds.find(pointer_to(address_of(at)), 1).place == space.at(address_of(at)));
  }
}

TEST_CASE("told: three threads hand the same addresses to each other") {
  for (std::size_t const capacity : {1u, 4u, 16u}) {
    fake_memory::space space;
    fake_memory::kinds kinds(fake_memory::driver{&space}, capacity);
    kinds.trust_hits();
    std::atomic<std::size_t> wrong{0}, right{0};
    std::thread threads[3];
    for (std::uint64_t i = 0; i < 3; ++i)
      threads[i] = std::thread([&, i] {
        replayable_random random(i);
        for (int round = 0; round < 4000; ++round) {
          std::size_t const at = random.below(unit_count), units = 1 + random.below(3);
          place_kind const kind = some_kind(random);
          if (!space.allocate(address_of(at), unit * units, kind, static_cast<int>(i))) continue;
          for (int look = 0; look < 4; ++look) {
            std::uintptr_t const address =
                address_of(at) + random.below(static_cast<std::uint32_t>(unit * units));
            memory_place const place = kinds.find(pointer_to(address), 1).place;
            bool const same = place.kind == kind && place.device == static_cast<int>(i) &&
                              place.base == address_of(at) && place.bytes == unit * units;
            ++(same ? right : wrong);
          }
          kinds.forget(pointer_to(address_of(at)));
          space.release(address_of(at));
        }
      });
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
    CHECK(right >= 4);  // the first to allocate always can
  }
}
