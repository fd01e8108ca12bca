// SPDX-License-Identifier: Apache-2.0
// compiled: as users do, since detours are left out where nothing is optimised
// What the system copies from and to the memory of a process, here its own: whatever length and place, by a
// detour where the processor copies strings slowly; and what it says of memory that is not there.
// thread sanitizer: no, there is one thread
#include "collx/transport/shared_memory/peer_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "device/vector_kinds.hpp"

namespace {

namespace memory = collx::transport::shared_memory;
using collx::status;

constexpr std::size_t page_bytes = 4096;

std::uint64_t address(std::byte const* p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

TEST_CASE("every length around a page and a detour, wherever both sides lie") {
  collx::replayable_random random(7);
  std::vector<std::byte> from(80'000), to(80'000), expected;
  for (std::byte& each : from) each = static_cast<std::byte>(random.next());
  std::size_t const first = (page_bytes - address(from.data()) % page_bytes) % page_bytes;
  std::size_t const second = page_bytes + (page_bytes - address(to.data()) % page_bytes) % page_bytes;
  for (std::size_t const bytes : {0u, 1u, 2047u, 2048u, 2049u, 16'383u, 16'384u, 16'385u, 50'000u})
    for (std::size_t const source : {0u, 16u, 64u, 100u, 4090u})
      for (std::size_t const apart : {0u, 1u, 16u, 31u, 32u, 64u, 4080u}) {
        std::byte* const read = from.data() + first + source;
        std::byte* const written = to.data() + second + source + apart;
        std::fill(to.begin(), to.end(), std::byte{0x5A});
        expected = to;
        std::copy_n(read, bytes, expected.data() + (written - to.data()));
        device_test::on_every_string_speed([&](bool) {
          std::fill(to.begin(), to.end(), std::byte{0x5A});
          REQUIRE(memory::read_memory_of(getpid(), address(read), written, bytes) == status::ok);
          REQUIRE(to == expected);
          std::fill(to.begin(), to.end(), std::byte{0x5A});
          REQUIRE(memory::write_memory_of(getpid(), address(written), read, bytes) == status::ok);
          REQUIRE(to == expected);
        });
      }
}

#if defined(COLLX_AVX2)
TEST_CASE("a detour is taken where strings crawl") {
  device_test::on_every_string_speed([&](bool slowly) {
    CHECK(memory::detail::wants_detour(16, 0, 2048) == slowly);
    CHECK(!memory::detail::wants_detour(16, 0, 2047));
    CHECK(!memory::detail::wants_detour(0, 16, 1 << 20));
    CHECK(!memory::detail::wants_detour(0, 0, 1 << 20));
  });
}
#endif

TEST_CASE("memory that is not there, in the middle of a copy: an error") {
  constexpr std::size_t pages = 8;
  void* const mapped =
      mmap(nullptr, pages * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  auto* const begin = static_cast<std::byte*>(mapped);
  munmap(begin + 6 * page_bytes, 2 * page_bytes);
  std::vector<std::byte> own((pages + 2) * page_bytes);
  std::byte* const page = own.data() + (page_bytes - address(own.data()) % page_bytes) % page_bytes;
  std::byte* const past = page + 16;
  std::byte* const before = page + page_bytes - 16;
  std::size_t const there = 6 * page_bytes, more = 7 * page_bytes;
  device_test::on_every_string_speed([&](bool) {
    CHECK(memory::read_memory_of(getpid(), address(begin), past, there) == status::ok);
    CHECK(memory::read_memory_of(getpid(), address(begin), past, more) == status::system_failure);
    CHECK(memory::write_memory_of(getpid(), address(begin), before, there) == status::ok);
    CHECK(memory::write_memory_of(getpid(), address(begin), before, more) == status::system_failure);
  });
  munmap(begin, 6 * page_bytes);
}

TEST_CASE("a page copied by the system takes some time, and about as long each time") {
  memory::page_copy const found = memory::time_page_copy();
  CHECK(found.by_system_ns >= 1);
  CHECK(found.cost > 0);
}
