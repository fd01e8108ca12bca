// SPDX-License-Identifier: Apache-2.0
// compiled: as users do, since what it is about is left out where nothing is optimised
// copy() and spread(): every size around cache lines, every alignment, streamed or not; nothing else changes.
// thread sanitizer: no, there is one thread
#include "collx/device/stream.hpp"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "device/streaming.hpp"
#include "device/vector_kinds.hpp"

TEST_CASE("copy: every size and alignment around a few cache lines, streamed and not") {
  say_if_nothing_is_streamed();
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
        auto const clean = to;
        device_test::on_every_kind([&] {
          to = clean;
          collx::device::copy(to.data() + 64 + shift, from.data() + source, bytes, large);
          REQUIRE(to == expected);
        });
      }
}

// As copy() does on processors that fetch ahead across pages by themselves, and on those that want help.
bool copies_streamed(std::byte* to, std::byte const* from, std::size_t bytes, bool helped) {
#if defined(COLLX_AVX2)
  if (collx::device::has_wide_vectors()) {
    collx::device::copy_streamed(to, from, bytes, helped);
    return true;
  }
#endif
  (void)to, (void)from, (void)bytes, (void)helped;
  return false;
}

TEST_CASE("copy: sizes around several pages at a time, helped to fetch ahead or not, wherever pages begin") {
  say_if_nothing_is_streamed();
  collx::replayable_random random(3);
  constexpr std::size_t several = collx::device::pages_at_a_time * collx::device::page_bytes;
  std::vector<std::byte> from(2 * several + 8192), to(from.size()), expected;
  for (std::byte& each : from) each = static_cast<std::byte>(random.next());
  for (std::size_t const bytes : {several - 64, several - 1, several, several + 1, several + 64,
                                  several + 4096, 2 * several - 1, 2 * several, 2 * several + 100})
    for (std::size_t const shift : {0u, 1u, 64u, 1000u, 4095u})
      for (std::size_t const source : {0u, 3u, 64u, 2048u}) {
        std::fill(to.begin(), to.end(), std::byte{0x5A});
        expected = to;
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source), bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(shift));
        device_test::on_every_kind([&] {
          std::fill(to.begin(), to.end(), std::byte{0x5A});
          collx::device::copy(to.data() + shift, from.data() + source, bytes, true);
          REQUIRE(to == expected);
          for (bool const helped : {false, true}) {
            std::fill(to.begin(), to.end(), std::byte{0x5A});
            if (copies_streamed(to.data() + shift, from.data() + source, bytes, helped))
              REQUIRE(to == expected);
          }
        });
      }
}

TEST_CASE("spread: every size, to destinations that lie alike in their lines and to others") {
  say_if_nothing_is_streamed();
  collx::replayable_random random(2);
  std::vector<std::byte> from(40'000);
  for (std::byte& each : from) each = static_cast<std::byte>(random.next());
  for (std::size_t const bytes : {0u, 1u, 64u, 1023u, 1024u, 1300u, 16384u, 16385u, 33000u})
    for (std::size_t const shift : {0u, 1u, 8u, 63u})
      for (std::size_t const apart : {0u, 4u, 64u})
        for (std::int32_t const count : {0, 1, 2, 3, 5})
          for (bool const large : {false, true})
            device_test::on_every_kind([&] {
              std::vector<std::vector<std::byte>> to(5, std::vector<std::byte>(34'000, std::byte{0x5A}));
              auto expected = to;
              std::byte* destinations[5];
              for (std::size_t j = 0; j < static_cast<std::size_t>(count); ++j) {
                std::size_t const line = 64 - reinterpret_cast<std::uintptr_t>(to[j].data()) % 64;
                std::size_t const begin = line + shift + j * apart;
                destinations[j] = to[j].data() + begin;
                std::copy_n(from.begin() + 5, bytes,
                            expected[j].begin() + static_cast<std::ptrdiff_t>(begin));
              }
              collx::device::spread(destinations, count, from.data() + 5, bytes, large);
              REQUIRE(to == expected);
            });
}

TEST_CASE("what is large depends on the cache, and is not small") {
  CHECK(collx::device::stream_bytes_min() >= 4096);
  CHECK(collx::device::stream_bytes_min() == collx::device::stream_bytes_min());
}
