// SPDX-License-Identifier: Apache-2.0
// More strangers at a desk than a rank can let in: there is always one more, and yet the clock is looked at.
// compiled: apart, it replaces accept4
#include <doctest/doctest.h>

#include "collx/net/descriptor_exchange.hpp"
#include "net/desks.hpp"

namespace {

using collx::now_us;

std::uint64_t crowd_until_us = 0;
int came = 0;

}  // namespace

// Somebody comes each time, as if others filled the queue faster than it is emptied.
extern "C" int accept4(int, sockaddr*, socklen_t*, int) {
  int ends[2];
  if (now_us() > crowd_until_us ||
      socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return errno = EAGAIN, -1;
  close(ends[1]);
  ++came;
  return ends[0];
}

TEST_CASE("a rank before whose desk strangers never end gives up at its deadline") {
  using namespace desks;
  descriptor_exchange mine("a test", 0);
  played_desk const one;  // takes the question and says nothing
  owned_fd const knocks(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un at;
  socklen_t const length = mine.mine().address(at);
  REQUIRE(connect(knocks.get(), reinterpret_cast<sockaddr const*>(&at), length) == 0);
  constexpr std::uint64_t patience_us = 1'000'000, spare_us = 5'000'000;
  std::uint64_t const deadline_us = now_us() + patience_us;
  crowd_until_us = deadline_us + spare_us;
  outcome const met = run_as_zero(mine, one.desk(), patience_us);
  CHECK(now_us() < crowd_until_us);
  CHECK(met.code == status::timeout);
  CHECK(met.says("rank 1 (process 4711) has not handed over a descriptor in time"));
  CHECK(came > 0);
}
