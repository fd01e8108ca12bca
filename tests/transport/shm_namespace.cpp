// SPDX-License-Identifier: Apache-2.0
// Shared memory reaches over a path, or a descriptor, into containers where processes have other numbers: who
// attaches to it there is told so, and nobody is taken for one that has ended.
// thread sanitizer: no, each rank is a process of one thread
#include <cstring>

#include <doctest/doctest.h>

#include "bootstrap/folder.hpp"
#include "collx/bootstrap/rendezvous.hpp"
#include "collx/transport/shm.hpp"
#include "contained.hpp"

namespace {

using collx::status;

// 0: join() throws an error that says what to do. Its text goes to stderr if it does not.
template <class Join>
int is_refused(Join const& join) {
  try {
    join();
    return 1;
  } catch (collx::error const& refused) {
    for (char const* part : {"another PID namespace", "shareProcessNamespace", "--pid=", "composite"})
      if (std::strstr(refused.what(), part) == nullptr) return std::fputs(refused.what(), stderr), 2;
    return refused.code() == status::not_supported ? 0 : 3;
  }
}

}  // namespace

TEST_CASE("shm: memory of another PID namespace is refused, with advice") {
  int const fd = collx::transport::shared_memory::segment::create(2, {.heap_bytes = 1 << 20});
  check_contained(contained(CLONE_NEWPID, [&] {
                    return is_refused([&] { (void)collx::transport::shm::join(fd, 1); });
                  }).ended());
  // What the header says stands for this one, too.
  CHECK_NOTHROW((void)collx::transport::shared_memory::segment::attach(fd));
  close(fd);
}

TEST_CASE("shm: ranks of two containers that meet at a path are told so, and not that one has ended") {
  folder const place;
  collx::transport::settings const chosen{.timeout_us = 60'000'000, .heap_bytes = 1 << 20};
  auto const meet = [&](collx::rank_t rank) {
    return collx::bootstrap::meet_at(place.at("meet").c_str(), rank, 2, chosen);
  };
  contained zero(CLONE_NEWPID, [&] {
    collx::net::owned_fd const segment = meet(0);
    return collx::transport::shared_memory::segment::attach(segment.get()).size() == 2 ? 0 : 4;
  });
  contained one(CLONE_NEWPID,
                [&] { return is_refused([&] { (void)collx::transport::shm::join(meet(1).get(), 1); }); });
  check_contained(one.ended());
  check_contained(zero.ended());
}
