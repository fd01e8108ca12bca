// SPDX-License-Identifier: Apache-2.0
// compiled: as users do, since what it is about is left out where nothing is optimised
// copy(): every size around cache lines, every alignment, streamed or not; nothing beside it is touched.
// thread sanitizer: no, there is one thread
#include "collx/device/stream.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"

TEST_CASE("copy: every size and alignment around a few cache lines, streamed and not") {
  collx::replayable_random random(1);
  std::vector<std::byte> from(4096), expected(4096), to(4096);
  for (std::byte& each : from) each = static_cast<std::byte>(random.next());
  for (std::size_t const bytes : {0u, 1u, 63u, 64u, 65u, 1000u, 1023u, 1024u, 1025u, 1088u, 2000u, 3000u})
    for (std::size_t shift = 0; shift < 64; ++shift)
      for (bool const large : {false, true}) {
        std::fill(to.begin(), to.end(), std::byte{0x5A});
        expected = to;
        std::size_t const source = shift * 37 % 64;
        for (std::size_t i = 0; i < bytes; ++i) expected[64 + shift + i] = from[source + i];
        collx::device::copy(to.data() + 64 + shift, from.data() + source, bytes, large);
        REQUIRE(to == expected);
      }
}

TEST_CASE("what is large depends on the cache, and is not small") {
  CHECK(collx::device::stream_bytes_min() >= 4096);
  CHECK(collx::device::stream_bytes_min() == collx::device::stream_bytes_min());
}
