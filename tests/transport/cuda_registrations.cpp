// SPDX-License-Identifier: Apache-2.0
// Values made once per allocation: each made and undone once, never undone in use, never given for another
// allocation at the same address; errors are not kept.
#include <set>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "collx/transport/cuda/registrations.hpp"
#include "transport/fake_memory.hpp"

namespace {

using namespace collx;
using namespace collx::transport::cuda_parts;
using fake_memory::address_of;
using fake_memory::unit;

// What a maker does is written down here. Registrations call their maker with their mutex held, hence no
// lock.
struct ledger {
  std::uint64_t made = 0, undone = 0;
  std::set<std::uint64_t> there;  // numbers of values that are made and not undone
  status next = status::ok;       // what make() says, once
  bool is_right = true;
};

struct handle {
  std::uint64_t number = 0;  // of this value; 0: none
  std::uint64_t id = 0;      // of the allocation it was made for
};

struct maker {
  ledger* book;
  status make(memory_place const& place, handle& value) noexcept {
    value = {++book->made, place.id};
    if (book->next != status::ok) {
      --book->made;
      return std::exchange(book->next, status::ok);
    }
    book->there.insert(value.number);
    return status::ok;
  }
  void undo(memory_place const& place, handle& value) noexcept {
    ++book->undone;
    book->is_right = book->is_right && book->there.erase(value.number) == 1 && place.id == value.id;
  }
};

using table = registrations<handle, maker>;

memory_place place_at(std::size_t at, std::size_t units, std::uint64_t id) {
  return {place_kind::device, 0, address_of(at), unit * units, id};
}

}  // namespace

TEST_CASE("made once, used by many, kept when nobody uses it") {
  ledger book;
  {
    table values(maker{&book}, 4);
    table::lease first, second;
    CHECK(!first);
    CHECK(values.acquire(place_at(0, 2, 1), first) == status::ok);
    CHECK(values.acquire(place_at(0, 2, 1), second) == status::ok);
    CHECK(first.value().number == second.value().number);
    CHECK(first.value().id == 1);
    CHECK(first.place() == place_at(0, 2, 1));
    first.end();
    second = table::lease{};
    CHECK(book.undone == 0);
    CHECK(values.acquire(place_at(0, 2, 1), first) == status::ok);
    CHECK(book.made == 1);
    table::lease moved(std::move(first));
    CHECK(moved.value().number == 1);
  }
  CHECK(book.undone == 1);
  CHECK(book.there.empty());
}

TEST_CASE("another allocation at the address gets another value, and ends the old one when nobody uses it") {
  struct shape {
    std::size_t at, units;
  };
  for (shape const fresh : {shape{4, 4}, shape{5, 1}, shape{2, 6}, shape{4, 1}, shape{7, 3}, shape{0, 16}})
    for (bool const used : {false, true}) {
      CAPTURE(fresh.at);
      CAPTURE(used);
      ledger book;
      table values(maker{&book}, 4);
      table::lease old, young;
      REQUIRE(values.acquire(place_at(4, 4, 1), old) == status::ok);
      if (!used) old.end();
      REQUIRE(values.acquire(place_at(fresh.at, fresh.units, 2), young) == status::ok);
      CHECK(young.value().id == 2);
      CHECK(book.undone == (used ? 0 : 1));
      if (used) CHECK(book.there.contains(old.value().number));
      old.end();
      CHECK(book.undone == 1);
      CHECK(values.size() == 1);
    }
}

TEST_CASE("neighbours, and other owners' memory at the same address, are left alone") {
  ledger book;
  table values(maker{&book}, 8);
  table::lease mine, theirs, next;
  REQUIRE(values.acquire(place_at(4, 4, 1), mine) == status::ok);
  REQUIRE(values.acquire(place_at(8, 4, 2), next) == status::ok);
  REQUIRE(values.acquire(place_at(4, 4, 1), theirs, 3) == status::ok);
  CHECK(theirs.value().number != mine.value().number);
  mine.end();
  theirs.end();
  next.end();
  CHECK(values.size() == 3);
  values.forget(address_of(5), 3);
  CHECK(values.size() == 2);
  REQUIRE(values.acquire(place_at(0, 4, 7), theirs, 3) == status::ok);
  theirs.end();
  values.forget_owner(3);
  CHECK(values.size() == 2);
  values.forget(address_of(4));
  CHECK(values.size() == 1);
  values.forget(address_of(4));
  CHECK(book.undone == 3);
}

TEST_CASE("what is forgotten in use lives until its last user ends") {
  ledger book;
  table values(maker{&book}, 4);
  table::lease one, two, later;
  REQUIRE(values.acquire(place_at(4, 4, 1), one) == status::ok);
  REQUIRE(values.acquire(place_at(4, 4, 1), two) == status::ok);
  values.forget(address_of(4));
  REQUIRE(values.acquire(place_at(4, 4, 1), later) == status::ok);  // said to be gone: made again
  CHECK(later.value().number != one.value().number);
  one.end();
  CHECK(book.undone == 0);
  two.end();
  CHECK(book.undone == 1);
  CHECK(book.there.contains(later.value().number));
}

TEST_CASE("an error of making is returned and not kept") {
  ledger book;
  table values(maker{&book}, 1);
  table::lease mine;
  book.next = status::system_failure;
  CHECK(values.acquire(place_at(0, 1, 1), mine) == status::system_failure);
  CHECK(!mine);
  CHECK(values.size() == 0);
  CHECK(values.acquire(place_at(0, 1, 1), mine) == status::ok);
  CHECK(mine.value().id == 1);
  CHECK(book.undone == 0);
}

TEST_CASE("when full, the value unused for longest goes; what is in use does not") {
  ledger book;
  table values(maker{&book}, 3);
  table::lease kept[3], more;
  for (std::size_t i = 0; i < 3; ++i) REQUIRE(values.acquire(place_at(i, 1, i + 1), kept[i]) == status::ok);
  CHECK(values.acquire(place_at(8, 1, 9), more) == status::out_of_memory);
  CHECK(!more);
  kept[1].end();
  kept[2].end();
  REQUIRE(values.acquire(place_at(1, 1, 2), more) == status::ok);  // used later than 3 now
  more.end();
  REQUIRE(values.acquire(place_at(8, 1, 9), more) == status::ok);
  CHECK(book.undone == 1);
  CHECK(book.there.contains(2));
  CHECK(!book.there.contains(3));
}

TEST_CASE("memory without identity gets a value each time") {
  ledger book;
  table values(maker{&book}, 4);
  table::lease one, two;
  REQUIRE(values.acquire(place_at(0, 2, 0), one) == status::ok);
  REQUIRE(values.acquire(place_at(0, 2, 0), two) == status::ok);
  CHECK(one.value().number != two.value().number);
  one.end();
  two.end();
  CHECK(book.undone == 2);
}

TEST_CASE("sweep asks the driver once for each allocation that has a value") {
  ledger book;
  fake_memory::space space;
  fake_memory::driver driver{&space};
  table values(maker{&book}, 8);
  table::lease mine;
  for (std::size_t i = 0; i < 4; ++i) {
    space.allocate(address_of(i), unit, place_kind::device, 0);
    REQUIRE(values.acquire(space.at(address_of(i)), mine) == status::ok);
  }
  REQUIRE(values.acquire(place_at(0, 1, 77), mine, 5) == status::ok);  // of another process: not asked for
  space.release(address_of(1));
  space.release(address_of(2));
  space.allocate(address_of(2), unit, place_kind::device, 0);
  values.sweep(driver);
  CHECK(space.id_queries == 4);
  CHECK(book.undone == 2);
  CHECK(values.size() == 3);
}

TEST_CASE("random use of memory that comes and goes, by seed") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    replayable_random random(seed);
    ledger book;
    std::size_t const capacity = 1 + random.below(8);
    {
      fake_memory::space space;
      fake_memory::driver driver{&space};
      table values(maker{&book}, capacity);
      std::vector<table::lease> leases(1 + random.below(6));
      for (int step = 0; step < 500; ++step) {
        std::uintptr_t const at = address_of(random.below(12));
        table::lease& lease = leases[random.below(static_cast<std::uint32_t>(leases.size()))];
        switch (random.below(8)) {
          case 0: space.allocate(at, unit * (1 + random.below(4)), place_kind::device, 0); break;
          case 1:
            if (space.begins_at(at)) space.release(at);
            break;
          case 2: values.forget(at); break;
          case 3: lease.end(); break;
          case 4:
            if (random.below(8) == 0) values.sweep(driver);
            break;
          default: {
            memory_place const place = space.at(at);
            if (place.kind == place_kind::host) break;
            bool const fails = random.below(10) == 0;
            if (fails) book.next = status::not_supported;
            status const code = values.acquire(place, lease);
            book.next = status::ok;
            if (code == status::ok) CHECK(lease.value().id == place.id);
            else CHECK((code == status::out_of_memory ? leases.size() > capacity : fails));
          }
        }
        for (table::lease const& held : leases)
          if (held) REQUIRE(book.there.contains(held.value().number));
        REQUIRE(book.there.size() == values.size());
        REQUIRE(values.size() <= capacity);
        REQUIRE(book.is_right);
      }
    }
    CHECK(book.there.empty());
    CHECK(book.made == book.undone);
  }
}

TEST_CASE("threads that want the value of one allocation get one") {
  ledger book;
  table values(maker{&book}, 4);
  std::uint64_t numbers[3] = {};
  std::thread threads[3];
  for (std::size_t i = 0; i < 3; ++i)
    threads[i] = std::thread([&, i] {
      for (int round = 0; round < 1000; ++round) {
        table::lease mine;
        if (values.acquire(place_at(0, 4, 1), mine) == status::ok) numbers[i] = mine.value().number;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(book.made == 1);
  for (std::uint64_t const number : numbers) CHECK(number == 1);
}
