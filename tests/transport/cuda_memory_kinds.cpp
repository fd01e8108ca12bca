// SPDX-License-Identifier: Apache-2.0
// The cache of memory kinds against a model, over memory that is freed and allocated again at the same
// addresses: no answer is of an allocation that is gone, and what is known costs what it should.
// thread sanitizer: no, there is one thread
// compiled: apart, it replaces operator new
#include <cstdlib>
#include <new>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "collx/transport/cuda/memory_kinds.hpp"
#include "transport/fake_memory.hpp"

namespace {

std::size_t allocations = 0;  // of tests that run in one thread

// Kept apart from the operators, so that compilers do not pair malloc with delete and warn.
__attribute__((noinline)) void* take(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  if (void* const p = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment)) return p;
  throw std::bad_alloc();
}
__attribute__((noinline)) void give(void* p) noexcept { std::free(p); }

}  // namespace

void* operator new(std::size_t bytes) { return take(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t a) { return take(bytes, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { give(p); }
void operator delete(void* p, std::size_t) noexcept { give(p); }
void operator delete(void* p, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give(p); }

namespace {

using namespace collx;
using namespace collx::transport::cuda_parts;
using fake_memory::address_of;
using fake_memory::pointer_to;
using fake_memory::unit;

enum class mode { checked, told };

// Memory and its cache; frees tell of themselves where they must.
struct world {
  explicit world(mode how = mode::checked, std::size_t capacity = 8) : told(how == mode::told) {
    kinds.emplace(fake_memory::driver{&space}, capacity);
    if (told) kinds->trust_hits();
  }
  bool allocate(std::size_t at, std::size_t units, place_kind kind = place_kind::device, int device = 0) {
    return space.allocate(address_of(at), unit * units, kind, device);
  }
  bool release(std::size_t at) {
    if (!space.begins_at(address_of(at))) return false;
    if (told) kinds->forget(pointer_to(address_of(at)));
    space.release(address_of(at));
    return true;
  }
  memory_answer find(std::size_t at, std::size_t offset = 10, std::size_t bytes = 1) {
    return kinds->find(pointer_to(address_of(at) + offset), bytes);
  }
  // Whether find() says what the model does.
  bool agrees(std::uintptr_t address, std::size_t bytes) {
    memory_place const truth = space.at(address);
    memory_answer const answer = kinds->find(pointer_to(address), bytes);
    bool const fits = truth.bytes == 0 || truth.reaches(address, bytes);
    return answer.place == truth && answer.code == (fits ? status::ok : status::bad_argument);
  }
  // Questions to the driver since the last call of this.
  struct questions {
    std::uint64_t ids, descriptions;
    friend bool operator==(questions const&, questions const&) = default;
  };
  questions asked() { return {space.id_queries.exchange(0), space.descriptions.exchange(0)}; }

  bool told;
  fake_memory::space space;
  std::optional<fake_memory::kinds> kinds;
};

constexpr mode both[] = {mode::checked, mode::told};

}  // namespace

TEST_CASE("the kind, the device and the allocation of an address") {
  for (mode const how : both) {
    world w(how);
    w.allocate(1, 2, place_kind::pinned, 0);
    w.allocate(3, 1, place_kind::device, 3);
    w.allocate(5, 4, place_kind::managed, 1);
    for (int round = 0; round < 2; ++round) {
      CHECK(w.find(0).place == memory_place{});
      CHECK(w.find(1).place == memory_place{place_kind::pinned, 0, address_of(1), 2 * unit, 1});
      CHECK(w.find(2).place.id == 1);
      CHECK(w.find(3).place == memory_place{place_kind::device, 3, address_of(3), unit, 2});
      CHECK(w.find(4).place.kind == place_kind::host);
      CHECK(w.find(8, unit - 1).place.kind == place_kind::managed);
      CHECK(w.find(9, 0).place.kind == place_kind::host);
    }
    CHECK(w.kinds->find(nullptr, 100).place == memory_place{});
  }
}

TEST_CASE("a range that leaves its allocation is refused, and the allocation is named") {
  world w;
  w.allocate(1, 2);
  w.allocate(3, 2);
  CHECK(w.find(1, 0, 2 * unit).code == status::ok);
  CHECK(w.find(2, 0, 0).code == status::ok);
  for (std::size_t const bytes : {2 * unit + 1, 3 * unit, ~std::size_t{0}}) {
    CHECK(w.find(1, 0, bytes).code == status::bad_argument);
    CHECK(w.find(1, 0, bytes).place.bytes == 2 * unit);
  }
  CHECK(w.find(0, 0, 3 * unit).code == status::ok);  // of host memory only the beginning is looked at
}

TEST_CASE("a buffer over several allocations, and one that ends in memory of nobody") {
  for (mode const how : both) {
    world w(how);
    for (std::size_t at = 1; at < 4; ++at) w.allocate(at, 1);
    w.allocate(5, 2, place_kind::pinned);
    using ids_of = std::vector<std::uint64_t>;
    auto const walk = [&](std::uintptr_t from, std::size_t bytes, ids_of const& expected) {
      ids_of ids;
      memory_answer const answer =
          w.kinds->find_each(pointer_to(from), bytes, [&](memory_place const& p) { ids.push_back(p.id); });
      CHECK(ids == expected);
      return answer.code;
    };
    CHECK(walk(address_of(1) + 5, 3 * unit - 5, {1, 2, 3}) == status::ok);
    CHECK(walk(address_of(1) + 5, 3 * unit - 4, {1, 2, 3}) == status::bad_argument);
    CHECK(walk(address_of(2), unit, {2}) == status::ok);
    CHECK(walk(address_of(2), 0, {2}) == status::ok);
    CHECK(walk(address_of(2), unit + 1, {2, 3}) == status::ok);
    CHECK(walk(address_of(0), 9 * unit, {0}) == status::ok);  // host memory: the beginning decides
    CHECK(walk(address_of(6), 2 * unit, {4}) == status::bad_argument);
    w.space.failure = 1;
    CHECK(walk(address_of(9), 1, {}) == status::system_failure);
  }
}

TEST_CASE("what is known costs one short question, or none where hits are trusted, and no memory") {
  for (mode const how : both) {
    world w(how);
    w.allocate(0, 100);
    w.allocate(200, 1);
    (void)w.find(0);
    (void)w.find(200);
    CHECK(w.asked() == world::questions{0, 4});  // each described twice
    std::size_t const before = allocations;
    for (std::size_t at = 0; at < 100; ++at) (void)w.find(at);  // other addresses of a known allocation
    for (int i = 0; i < 100; ++i) (void)w.find(200);
    CHECK(allocations == before);
    CHECK(w.asked() == world::questions{how == mode::told ? 0u : 200u, 0});
    (void)w.find(150);
    (void)w.find(150);
    CHECK(w.asked() == world::questions{0, 2});  // host memory: one each time
    w.release(200);
    (void)w.find(200);
    CHECK(w.asked() == world::questions{how == mode::told ? 0u : 1u, 1});
    (void)w.find(200);
    CHECK(w.asked() == world::questions{0, 1});  // what is gone is not asked for by its identity again
  }
}

TEST_CASE("another allocation drops the records that it overlaps") {
  struct shape {
    std::size_t at, units;
  };
  // Old ones at 4..7 and 8..11. New ones: the same place, inside, larger, smaller, over both.
  for (shape const fresh : {shape{4, 4}, shape{6, 1}, shape{6, 2}, shape{2, 6}, shape{4, 1}, shape{6, 4},
                            shape{2, 12}, shape{7, 2}})
    for (mode const how : both) {
      CAPTURE(fresh.at);
      CAPTURE(fresh.units);
      world w(how);
      w.allocate(4, 4);
      w.allocate(8, 4);
      for (std::size_t at = 4; at < 12; ++at) (void)w.find(at);
      w.release(4);
      w.release(8);
      w.allocate(fresh.at, fresh.units, place_kind::pinned);
      for (std::size_t at = 0; at < 16; ++at) CHECK(w.agrees(address_of(at), 3));
      for (std::size_t at = 16; at-- != 0;) CHECK(w.agrees(address_of(at), 3));
    }
}

TEST_CASE("an untold free: the checked cache sees it, the other when something overlaps") {
  world w(mode::told);
  w.allocate(4, 4);
  w.allocate(8, 4);
  (void)w.find(4);
  (void)w.find(8);
  w.space.release(address_of(4));
  w.space.release(address_of(8));
  w.allocate(6, 8, place_kind::pinned);
  CHECK(w.find(4).place.id == 1);   // nobody said so, which is against the rules
  CHECK(w.find(13).place.id == 3);  // it is found by an address that nothing is known of
  for (std::size_t at = 0; at < 16; ++at) CHECK(w.agrees(address_of(at), 1));
}

TEST_CASE("trust_hits drops what it was never told of") {
  world w;
  w.allocate(4, 1);
  (void)w.find(4);
  w.space.release(address_of(4));
  w.allocate(4, 1, place_kind::managed);
  w.kinds->trust_hits();
  CHECK(w.find(4).place.kind == place_kind::managed);
}

TEST_CASE("more allocations than records: right all the same, and those in use stay") {
  for (mode const how : both) {
    world w(how, 4);
    for (std::size_t at = 0; at < 40; ++at) w.allocate(at, 1);
    for (std::size_t at = 0; at < 40; ++at) {
      CHECK(w.agrees(address_of(0), 1));
      CHECK(w.agrees(address_of(at), 1));
    }
    CHECK(w.asked().descriptions == 2 * 40);  // so the first, asked for again and again, was never dropped
    (void)w.find(1);
    CHECK(w.asked().descriptions == 2);
  }
}

TEST_CASE("a failure of the driver is told, and not kept") {
  world w;
  w.allocate(0, 1);
  w.space.failure = 700;
  memory_answer const failed = w.find(0);
  CHECK(failed.code == status::system_failure);
  CHECK(failed.driver_error == 700);
  w.space.failure = 0;
  CHECK(w.agrees(address_of(0), 1));
  w.space.failure = 700;  // nor does what is known hide it
  CHECK(w.find(0).code == status::system_failure);
}

TEST_CASE("an allocation without identity is asked for each time") {
  for (mode const how : both) {
    world w(how);
    w.space.has_identities = false;
    w.allocate(0, 2);
    for (int i = 0; i < 3; ++i) CHECK(w.find(0, 0, 2 * unit).place.kind == place_kind::device);
    CHECK(w.asked() == world::questions{0, 18});
    w.release(0);
    w.allocate(0, 1, place_kind::pinned);
    CHECK(w.find(0).place.kind == place_kind::pinned);
  }
}

TEST_CASE(
    "memory that is freed when its identity is read, and there again afterwards, has one all the same") {
  for (int const changes : {4, 8}) {  // two in each description, of which two alike would be believed
    CAPTURE(changes);
    world w;
    w.allocate(4, 4);
    int left = changes;
    w.space.between = [&] {
      if (left == 0) return;
      if (left-- % 2 == 0) w.release(4);
      else w.allocate(4, 4);
    };
    memory_answer const answer = w.find(4);
    CHECK(answer.code == status::ok);
    CHECK(answer.place.id == w.space.lives().size());
  }
}

TEST_CASE("memory that changes hands while it is described") {
  for (std::uint32_t changes = 1; changes < 100; ++changes) {
    CAPTURE(changes);
    world w;
    w.allocate(4, 4);
    std::uint32_t left = changes;
    w.space.between = [&] {
      if (left == 0) return;
      --left;
      bool const begins = w.release(4);
      if (!begins) w.release(3);
      w.allocate(begins ? 3 : 4, begins ? 3 : 4, begins ? place_kind::pinned : place_kind::device);
    };
    memory_answer const answer = w.find(4);
    // Each of 16 attempts sees four changes at most: fewer than 61 leave one alone, 64 leave none.
    if (changes < 61) CHECK(answer.place == w.space.at(address_of(4)));
    if (changes >= 64) CHECK((answer.code == status::bad_argument && answer.place == memory_place{}));
    w.space.between = nullptr;
    CHECK(w.agrees(address_of(4), 1));
  }
}

TEST_CASE("what is told of while it is described is not kept") {
  world w(mode::told);
  w.allocate(4, 1);
  w.space.between = [&] { w.kinds->forget(pointer_to(address_of(4))); };
  (void)w.find(4);
  w.space.between = nullptr;
  w.space.release(address_of(4));
  w.allocate(4, 1, place_kind::pinned);
  CHECK(w.agrees(address_of(4), 1));
}

namespace {

// Steps over three addresses: six ways to allocate, three to free, three to ask.
constexpr std::size_t step_count = 12;

// False: not possible here.
bool take_step(world& w, std::size_t step) {
  constexpr std::size_t at[] = {0, 0, 0, 1, 1, 2}, units[] = {1, 2, 3, 1, 2, 1};
  if (step < 6) {
    bool const odd = w.space.now() % 2 != 0;
    return w.allocate(at[step], units[step], odd ? place_kind::pinned : place_kind::device, odd);
  }
  if (step < 9) return w.release(step - 6);
  CHECK(w.agrees(address_of(step - 9) + 10, unit));
  return true;
}

// Every sequence that begins with steps[0..done) and has `length` steps. Returns how many.
std::size_t try_all(std::vector<std::size_t>& steps, std::size_t length, mode how, std::size_t capacity) {
  world w(how, capacity);
  for (std::size_t const step : steps)
    if (!take_step(w, step)) return 0;
  if (steps.size() == length) {
    for (std::size_t at = 0; at < 3; ++at) CHECK(w.agrees(address_of(at), 1));
    return 1;
  }
  std::size_t count = 0;
  for (std::size_t step = 0; step < step_count; ++step) {
    steps.push_back(step);
    count += try_all(steps, length, how, capacity);
    steps.pop_back();
  }
  return count;
}

}  // namespace

TEST_CASE("all short sequences of allocating, freeing and asking at three addresses") {
  for (mode const how : both)
    for (std::size_t const capacity : {1u, 2u, 3u}) {
      CAPTURE(capacity);
      std::vector<std::size_t> steps;
      CHECK(try_all(steps, 5, how, capacity) > 10'000);
    }
}

TEST_CASE("long random sequences, by seed") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    replayable_random random(seed);
    world w(both[seed % 2], 1 + random.below(20));
    std::size_t const units = 4 + random.below(60);
    for (int step = 0; step < 600; ++step) {
      std::size_t const at = random.below(static_cast<std::uint32_t>(units));
      std::uint32_t const what = random.below(10);
      if (what < 2) {
        w.allocate(at, 1 + random.below(1 + random.below(12)), static_cast<place_kind>(1 + random.below(3)),
                   static_cast<int>(random.below(4)));
      } else if (what < 4) {
        w.release(at);
      } else {
        REQUIRE(w.agrees(address_of(at) + random.below(unit), random.below(3 * unit)));
      }
    }
  }
}
