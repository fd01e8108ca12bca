// SPDX-License-Identifier: Apache-2.0
// How a rank waits: deadlines that hold, interruptions that are asked for, a restart that forgets, and
// when it goes to sleep.
#include "collx/exec/waiter.hpp"

#include <initializer_list>

#include <doctest/doctest.h>

using collx::status;
using collx::exec::waiter;
using collx::exec::wakefulness;

namespace {

// Where nobody can sleep.
struct no_place {
} nowhere;
static_assert(!collx::exec::sleeping_place<no_place>);

// Pauses until something else than ok comes out; gives up after `most` pauses.
template <class Interrupted, class Place = no_place>
status wait(waiter& patience, Interrupted const& interrupted, Place& place = nowhere,
            int most = 100'000'000) {
  for (int i = 0; i < most; ++i)
    if (status const why = patience.pause(interrupted, place); why != status::ok) return why;
  return status::pending;
}

status never() { return status::ok; }

// Counts what is asked of it. Naps end at once, of their own or because somebody rings.
struct counting_place {
  bool possible = true;
  bool rings = false;
  int prepared = 0;
  int naps = 0;
  std::uint64_t longest_us = 0;

  [[nodiscard]] bool prepare_to_sleep() noexcept {
    ++prepared;
    return possible;
  }
  [[nodiscard]] bool sleep(std::uint64_t at_most_us) noexcept {
    ++naps;
    longest_us = at_most_us > longest_us ? at_most_us : longest_us;
    return rings;
  }
};
static_assert(collx::exec::sleeping_place<counting_place>);

}  // namespace

TEST_CASE("waiter: a deadline passes after its time, not before") {
  for (std::uint32_t const spins : {0u, 100u}) {
    std::uint64_t const began = collx::now_us();
    waiter patience(wakefulness{spins}, 20'000);
    CHECK(wait(patience, never) == status::timeout);
    std::uint64_t const elapsed_us = patience.elapsed_us();  // asked before the clock is read again
    std::uint64_t const took_us = collx::now_us() - began;
    CHECK(elapsed_us >= 20'000);
    CHECK(elapsed_us <= took_us);
  }
}

TEST_CASE("waiter: an interruption ends the wait with its reason, long before the deadline") {
  waiter patience(wakefulness{10}, 3'600'000'000);
  int asked = 0;
  CHECK(wait(patience, [&] { return ++asked < 3 ? status::ok : status::peer_lost; }) == status::peer_lost);
  CHECK(asked == 3);
}

TEST_CASE("waiter: while it spins it asks nobody") {
  waiter patience(wakefulness{1000}, 0);
  int asked = 0;
  for (int i = 0; i < 1000; ++i)
    CHECK(patience.pause([&] { return ++asked, status::aborted; }, nowhere) == status::ok);
  CHECK(asked == 0);
  CHECK(patience.elapsed_us() == 0);
}

TEST_CASE("waiter: a restart begins a new deadline") {
  waiter patience(wakefulness{}, 100'000);
  while (patience.elapsed_us() < 1'000) (void)patience.pause(never, nowhere);
  patience.restart();
  CHECK(patience.elapsed_us() == 0);
  std::uint64_t const began = collx::now_us();
  CHECK(wait(patience, never) == status::timeout);
  CHECK(collx::now_us() - began >= 100'000);
}

TEST_CASE("waiter: it prepares, looks once more, then sleeps, and never beyond the deadline") {
  for (std::uint64_t const timeout_us : {std::uint64_t{3'600'000'000}, std::uint64_t{30'000}}) {
    waiter patience(wakefulness{}, timeout_us);
    counting_place bed;
    CHECK(patience.pause(never, bed) == status::ok);
    CHECK(bed.prepared == 1);
    CHECK(bed.naps == 0);  // the caller looks first
    // A thread that is held up for long naps once only before a deadline that is near.
    if (timeout_us > 30'000) {
      CHECK(wait(patience, never, bed, 100) == status::pending);
      CHECK(bed.naps == 100);
    } else {
      CHECK(wait(patience, never, bed) == status::timeout);
      CHECK(bed.naps > 0);
    }
    CHECK(bed.prepared == 1);  // peers know, nobody has rung
    CHECK(bed.longest_us <= timeout_us);
  }
}

TEST_CASE("waiter: woken, it stays awake for a while") {
  waiter patience(wakefulness{1, 2'000}, 3'600'000'000);
  counting_place bed{.rings = true};
  std::uint64_t began = collx::now_us();  // no later than the waiter's own: it wakes within a pause
  for (int round = 1; round < 4; ++round) {
    std::uint64_t before_nap = 0;
    while (bed.naps < round) {
      before_nap = collx::now_us();
      CHECK(patience.pause(never, bed) == status::ok);
    }
    CHECK(collx::now_us() - began >= 2'000);
    began = before_nap;
    CHECK(bed.prepared == round);
  }
}

TEST_CASE("waiter: whatever moves keeps it awake, and what is not possible it does not do") {
  waiter patience(wakefulness{}, 3'600'000'000);
  counting_place bed;
  for (int i = 0; i < 100; ++i) {
    CHECK(patience.pause(never, bed) == status::ok);
    patience.stay_awake();
  }
  CHECK(bed.naps == 0);
  bed.possible = false;
  for (int i = 0; i < 100; ++i) CHECK(patience.pause(never, bed) == status::ok);
  CHECK(bed.naps == 0);
}

TEST_CASE("waiter: an interruption is asked for between preparing and sleeping") {
  waiter patience(wakefulness{}, 3'600'000'000);
  counting_place bed;
  CHECK(patience.pause([&] { return bed.prepared == 0 ? status::ok : status::aborted; }, bed) ==
        status::aborted);
}

TEST_CASE("with more ranks than processors nobody spins, nor where waiting is sleeping") {
  using collx::exec::wakefulness_of;
  CHECK(wakefulness_of(false, 100).spins == collx::exec::looks_at_memory);
  CHECK(wakefulness_of(false, 100, 32).spins == 32);
  CHECK(wakefulness_of(false, 100).yield_us == 100);
  CHECK(wakefulness_of(true, 100).spins == 0);
  CHECK(wakefulness_of(true, 100).yield_us == 100);
  CHECK(wakefulness_of(false, 0).spins == 0);
}
