// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other takes memory as it comes: whoever announces much and sends little costs little.
// component: tcp
// compiled: apart, it replaces operator new
// thread sanitizer: no, there is one thread, and it has its own operator new
#include <cstdlib>
#include <new>

#include <doctest/doctest.h>
#include <sys/socket.h>

#include "collx/bootstrap/gather.hpp"

static std::size_t largest = 0;

void* operator new(std::size_t bytes) {
  if (bytes > largest) largest = bytes;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

namespace {

// The largest piece of memory that the last rank of 4096 takes when its parent announces as much as there can
// be, and sends `bytes` of it.
std::size_t largest_after(std::size_t bytes) {
  using namespace collx;
  constexpr std::size_t step = 4096;
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  net::owned_fd const parent(ends[1]);
  bootstrap::network_membership all;
  all.rank = 4095;  // without children
  all.size = 4096;
  all.parent.reset(ends[0]);
  std::byte said[step] = {};
  net::put_u64(said, 4096 * (8 + std::uint64_t{bootstrap::text_gathering::text_bytes_max}));
  REQUIRE(send(parent.get(), said, 8, MSG_DONTWAIT) == 8);
  for (std::size_t sent = 0; sent < bytes; sent += step)
    REQUIRE(send(parent.get(), said, step, MSG_DONTWAIT) == ssize_t{step});
  REQUIRE(shutdown(parent.get(), SHUT_WR) == 0);
  largest = 0;
  status how = status::ok;
  try {
    (void)bootstrap::text_gathering(all, now_us() + 60'000'000).gather({});
  } catch (error const& failed) {
    how = failed.code();
  }
  CHECK(how == status::peer_lost);
  return largest;
}

}  // namespace

TEST_CASE("gather: memory grows with what has come, whatever is announced") {
  constexpr std::size_t first = 64 * 1024;
  CHECK(largest_after(0) == first);
  CHECK(largest_after(first - 4096) == first);
  CHECK(largest_after(first) == 2 * first);
  CHECK(largest_after(first + 4096) == 2 * first);
}
