// SPDX-License-Identifier: Apache-2.0
// How a rank waits where others want the processor, and have it for long whenever this one gives it away.
// compiled: apart, it replaces sched_yield
#include "collx/exec/waiter.hpp"

#include <sched.h>

#include <doctest/doctest.h>

namespace {

constexpr std::uint64_t turn_us = 4'000;  // of all others together
int yields = 0;

}  // namespace

extern "C" int sched_yield() noexcept {
  ++yields;
  for (std::uint64_t const began = collx::now_us(); collx::now_us() - began < turn_us;) {}
  return 0;
}

namespace {

struct bed_for_two_naps {
  int prepared_at = 0;
  [[nodiscard]] bool prepare_to_sleep() noexcept {
    prepared_at = yields;
    return true;
  }
  [[nodiscard]] bool sleep(std::uint64_t) noexcept { return false; }
};

}  // namespace

// 64 yields, after which it looks at the clock where nobody else wants the processor, would be 256 ms.
TEST_CASE("waiter: it looks around, and sleeps, after a few yields if each takes milliseconds") {
  yields = 0;
  collx::exec::waiter patience({0, 200}, 3'600'000'000);
  bed_for_two_naps bed;
  int asked_at = 0;
  for (int i = 0; i < 100 && bed.prepared_at == 0; ++i) {
    CHECK(patience.pause([&] { return asked_at == 0 ? asked_at = yields : 0, collx::status::ok; }, bed) ==
          collx::status::ok);
  }
  CHECK(asked_at > 0);
  CHECK(asked_at <= 8);
  CHECK(bed.prepared_at > asked_at);  // it yields for a while, and sleeps then
  CHECK(bed.prepared_at <= 16);
}

TEST_CASE("waiter: a deadline passes in time where each yield takes milliseconds") {
  std::uint64_t const began = collx::now_us();
  collx::exec::waiter patience({}, 20'000);
  struct {
  } nowhere;
  while (patience.pause([] { return collx::status::ok; }, nowhere) == collx::status::ok) {}
  CHECK(patience.elapsed_us() >= 20'000);
  CHECK(collx::now_us() - began < 64 * turn_us);
}
