// SPDX-License-Identifier: Apache-2.0
// When payloads are lent because staging is slow, and when staging is tried again.
#include "collx/transport/mapped/staging_pace.hpp"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

namespace {

using collx::transport::copying;
using collx::transport::mapped::staging_pace;

constexpr std::size_t ring_bytes = 512 * 1024, payload_bytes = 64 * 1024, page_bytes = 4096;
constexpr std::uint64_t page_ns = 300, near_ns = 150, far_ns = 1000;  // the system's, and those of staging

struct machine {
  explicit machine(copying how = copying::by_receivers, double system_page_ns = page_ns,
                   bool is_doubtful = false, bool is_crowded = false) {
    pace.start(how, {system_page_ns, is_doubtful, is_crowded}, ring_bytes);
  }
  // Stages until payloads are lent, or so many have been staged; how many that were.
  int stage(std::uint64_t of_page_ns, int at_most = 100'000) {
    int staged = 0;
    while (staged < at_most && !lends()) {
      std::uint64_t const took_ns = of_page_ns * payload_bytes / page_bytes;
      now_us += took_ns / 1000;
      pace.note(payload_bytes, took_ns, now_us);
      ++staged;
    }
    return staged;
  }
  // The pace asks the real clock where it lends; here time is what the test says.
  bool lends() {
    if (!lent) lent = pace.lends();
    else lent = pace.still_lends(now_us);
    return lent;
  }
  // How long payloads are lent from now on.
  std::uint64_t lend() {
    std::uint64_t const begin_us = now_us;
    while (lends()) now_us += 1000;
    return now_us - begin_us;
  }

  staging_pace pace;
  std::uint64_t now_us = collx::now_us();
  bool lent = false;
};

}  // namespace

TEST_CASE("where the system is quick everything is lent, whatever staging takes") {
  machine quick(copying::by_receivers, 0);
  CHECK(quick.pace.lends());
  CHECK_FALSE(quick.pace.is_slow());
  CHECK(quick.stage(near_ns) == 0);
}

TEST_CASE("in doubt, staging is given up sooner, and nothing further is lent") {
  machine sure(copying::by_receivers, page_ns), unsure(copying::by_receivers, page_ns, true);
  constexpr std::uint64_t between_ns = page_ns;  // as long as the system takes
  CHECK(sure.stage(near_ns) == 100'000);
  CHECK(unsure.stage(near_ns) == 100'000);
  CHECK(sure.stage(between_ns) == 100'000);
  CHECK(unsure.stage(between_ns) < 100'000);
  CHECK(unsure.pace.lends());
  CHECK_FALSE(unsure.pace.is_slow());
  CHECK(sure.stage(far_ns) < 100'000);
  CHECK(sure.pace.is_slow());
}

TEST_CASE("where ranks share processors, staging is given up later") {
  machine apart(copying::by_receivers, page_ns), crowded(copying::by_receivers, page_ns, false, true);
  constexpr std::uint64_t between_ns = 2 * page_ns;
  CHECK(apart.stage(between_ns) < 100'000);
  CHECK(crowded.stage(between_ns) == 100'000);
  CHECK(crowded.stage(far_ns) < 100'000);
}

TEST_CASE("payloads are staged while that is quick") {
  machine near;
  CHECK(near.stage(near_ns, 10'000) == 10'000);
  CHECK_FALSE(near.pace.is_slow());
}

TEST_CASE("payloads are lent after a few slow ones in a row, once the staging memory has gone round twice") {
  machine far;
  int const round = ring_bytes / payload_bytes;
  CHECK(far.stage(far_ns) == 2 * round + staging_pace::slow_in_a_row_max - 1);
  CHECK(far.pace.is_slow());

  // A few slow ones now and then.
  machine disturbed;
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(disturbed.stage(far_ns, 4) == 4);
    REQUIRE(disturbed.stage(near_ns, 12) == 12);
  }
}

TEST_CASE("payloads are lent where staging is slow for some peers only") {
  machine some;
  CHECK(some.stage(near_ns, 1000) == 1000);
  int pairs = 0;
  for (; pairs < 100 && some.stage(far_ns, 1) == 1; ++pairs) some.stage(near_ns, 1);
  CHECK(pairs == staging_pace::slow_in_a_row_max * 3 / 2);
  CHECK(some.pace.is_slow());
}

TEST_CASE("staging is tried again, more and more seldom, and for good once it is quick") {
  machine moved;
  CHECK(moved.stage(far_ns) > 0);
  std::uint64_t expected_us = staging_pace::patience_us_min;
  for (int i = 0; i < 12; ++i) {
    std::uint64_t const lent_us = moved.lend();
    CHECK(lent_us >= expected_us - 1000);
    CHECK(lent_us <= expected_us + 1000);
    CHECK(moved.stage(far_ns) < 50);
    expected_us = std::min(2 * expected_us, staging_pace::patience_us_max);
  }
  moved.lend();
  CHECK(moved.stage(near_ns, 10'000) == 10'000);
  // It was quick for long: what is found afterwards is news.
  CHECK(moved.stage(far_ns) < 50);
  CHECK(moved.lend() <= staging_pace::patience_us_min + 1000);
}

TEST_CASE("of what both sides copy, the system's copy takes half, so staging has to be quicker") {
  CHECK(machine(copying::by_receivers).stage(page_ns, 1000) == 1000);
  CHECK(machine(copying::by_both).stage(page_ns, 1000) < 1000);
  CHECK(machine(copying::by_both).stage(page_ns / 2, 1000) == 1000);
}

TEST_CASE("a copy to staging memory copies, and short ones are not looked at") {
  staging_pace pace;
  pace.start(copying::by_receivers, {1e-6}, 0);  // whatever it takes is slow
  std::vector<std::byte> from(payload_bytes, std::byte{7}), to(payload_bytes);
  for (int i = 0; i < 100; ++i) pace.copy(to.data(), from.data(), staging_pace::noted_bytes_min - 1);
  CHECK_FALSE(pace.lends());
  CHECK(to[staging_pace::noted_bytes_min - 2] == std::byte{7});
  CHECK(to[staging_pace::noted_bytes_min - 1] == std::byte{0});
  std::uint64_t const begin_us = collx::now_us();
  int copies = 0;
  while (!pace.lends() && copies < 100) pace.copy(to.data(), from.data(), payload_bytes), ++copies;
  CHECK(copies == staging_pace::noted_one_in + staging_pace::slow_in_a_row_max - 1);
  CHECK(to == from);
  // So many questions are answered alike at least, and for so long.
  std::uint32_t questions = 0;
  while (pace.lends()) ++questions;
  CHECK(questions >= staging_pace::questions_min - 2);
  CHECK(collx::now_us() - begin_us >= staging_pace::patience_us_min);
}
