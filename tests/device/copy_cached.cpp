// SPDX-License-Identifier: Apache-2.0
// compiled: as users do, since what it is about is left out where nothing is optimised
// copy_cached(): by lines and by the library, sizes around where lines begin, are fetched ahead, and end,
// wherever it lies; nothing else changes, and no place is much slower than another.
// thread sanitizer: no, there is one thread
#include "collx/device/copy_cached.hpp"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/clock.hpp"
#include "collx/core/random.hpp"
#include "device/vector_kinds.hpp"

namespace {

using collx::device::copy_cached, collx::device::page_bytes;

// Where a page begins in some memory.
[[maybe_unused]] std::byte* page_of(std::vector<std::byte>& memory) {
  auto const at = reinterpret_cast<std::uintptr_t>(memory.data());
  return memory.data() + (page_bytes - at % page_bytes) % page_bytes;
}

}  // namespace

TEST_CASE("copy_cached: every size and place") {
  collx::replayable_random random(4);
  std::vector<std::byte> from(40'000), expected(40'000), to(40'000);
  for (std::byte& each : from) each = static_cast<std::byte>(random.next());
  for (std::size_t const bytes : {0u, 1u, 64u, 2047u, 2048u, 2049u, 4095u, 4096u, 4159u, 4160u, 4161u, 5000u,
                                  8191u, 8192u, 8193u, 30'001u})
    for (std::size_t shift = 0; shift < 64; ++shift) {
      std::size_t const source = shift * 37 % 64;
      std::fill(expected.begin(), expected.end(), std::byte{0x5A});
      std::copy_n(from.data() + source, bytes, expected.data() + 64 + shift);
      device_test::on_every_kind([&] {
        device_test::on_every_string_speed([&](bool) {
          std::fill(to.begin(), to.end(), std::byte{0x5A});
          copy_cached(to.data() + 64 + shift, from.data() + source, bytes);
          REQUIRE(to == expected);
        });
#if defined(COLLX_AVX2)
        if (!collx::device::has_wide_vectors()) return;
        std::fill(to.begin(), to.end(), std::byte{0x5A});
        collx::device::copy_lines(to.data() + 64 + shift, from.data() + source, bytes);
        REQUIRE(to == expected);
#endif
      });
    }
}

TEST_CASE("copy_cached: nothing, from nowhere to nowhere") { copy_cached(nullptr, nullptr, 0); }

TEST_CASE("a string crawls up to 31 bytes past its source, as places within pages") {
  using collx::device::string_crawls;
  for (std::uintptr_t const from : {0x10000u, 0x10010u, 0x10FFFu})
    for (std::uintptr_t const page : {0u, 0x1000u, 0x70000u}) {
      for (std::uintptr_t apart = 0; apart < page_bytes; ++apart)
        REQUIRE(string_crawls(from + page + apart, from) == (apart >= 1 && apart <= 31));
      CHECK(!string_crawls(from, from + page));
      CHECK(!string_crawls(from, from + page + 16));
      CHECK(string_crawls(from, from + page + page_bytes - 16));
    }
}

// Strings that crawl take 20 times as long, on some processors.
TEST_CASE("copy_cached: wherever it lies, it takes about as long") {
#if !defined(COLLX_AVX2)
  MESSAGE("SKIPPED: copies are the C library's here");
#else
  if (COLLX_SANITIZED || !collx::device::has_wide_vectors()) {
    MESSAGE("SKIPPED: copies are the C library's here");
    return;
  }
  std::vector<std::byte> a(100'000, std::byte{1}), b(100'000, std::byte{2});
  auto const least_ns = [&](std::size_t bytes, std::size_t to, std::size_t from) {
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < 50; ++i) {
      std::uint64_t const begin = collx::now_ns();
      for (int j = 0; j < 4; ++j) copy_cached(page_of(a) + to, page_of(b) + from, bytes);
      least = std::min(least, collx::now_ns() - begin);
    }
    return least;
  };
  for (std::size_t const bytes : {2048u, 4096u, 16'384u, 65'536u}) {
    std::uint64_t const well = least_ns(bytes, 0, 0);
    for (std::size_t const apart : {1u, 8u, 16u, 31u, 48u}) {
      std::uint64_t const took = least_ns(bytes, apart, 0);
      CHECK_MESSAGE(took <= 6 * well, bytes << " bytes, " << apart << " past: " << took << " ns, not "
                                            << well);
    }
  }
#endif
}
