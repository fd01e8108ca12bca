// SPDX-License-Identifier: Apache-2.0
// How a rank waits: deadlines that hold, interruptions that are asked for, a restart that forgets.
#include "collx/exec/waiter.hpp"

#include <initializer_list>

#include <doctest/doctest.h>

using collx::status;
using collx::exec::waiter;

namespace {

// Pauses until something else than ok comes out; gives up after `most` pauses.
template <class Interrupted>
status wait(waiter& patience, Interrupted const& interrupted, int most = 100'000'000) {
  for (int i = 0; i < most; ++i)
    if (status const why = patience.pause(interrupted); why != status::ok) return why;
  return status::pending;
}

status never() { return status::ok; }

}  // namespace

TEST_CASE("waiter: a deadline passes after its time, not before") {
  for (std::uint32_t const spins : {0u, 100u}) {
    std::uint64_t const began = collx::now_us();
    waiter patience(spins, 20'000);
    CHECK(wait(patience, never) == status::timeout);
    std::uint64_t const took = collx::now_us() - began;
    CHECK(took >= 20'000);
    CHECK(patience.elapsed_us() >= 20'000);
    CHECK(patience.elapsed_us() <= took);
  }
}

TEST_CASE("waiter: an interruption ends the wait with its reason, long before the deadline") {
  waiter patience(10, 3'600'000'000);
  int asked = 0;
  CHECK(wait(patience, [&] { return ++asked < 3 ? status::ok : status::peer_lost; }) == status::peer_lost);
  CHECK(asked == 3);
}

TEST_CASE("waiter: while it spins it asks nobody") {
  waiter patience(1000, 0);
  int asked = 0;
  for (int i = 0; i < 1000; ++i)
    CHECK(patience.pause([&] { return ++asked, status::aborted; }) == status::ok);
  CHECK(asked == 0);
  CHECK(patience.elapsed_us() == 0);
}

TEST_CASE("waiter: a restart begins a new deadline") {
  waiter patience(0, 100'000);
  while (patience.elapsed_us() < 1'000) (void)patience.pause(never);
  patience.restart();
  CHECK(patience.elapsed_us() == 0);
  std::uint64_t const began = collx::now_us();
  CHECK(wait(patience, never) == status::timeout);
  CHECK(collx::now_us() - began >= 100'000);
}

TEST_CASE("with more ranks than processors nobody spins") {
  CHECK(collx::exec::spins_before_yield(1) > 0);
  CHECK(collx::exec::spins_before_yield(100'000) == 0);
}
