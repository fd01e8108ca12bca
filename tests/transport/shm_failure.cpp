// SPDX-License-Identifier: Apache-2.0
// After a call on `shm` has failed its buffers are the caller's: a peer that comes late must not take for the
// message what he has written there since.
#include <algorithm>
#include <atomic>
#include <vector>

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mman.h>

#include "collx/collective/reduce.hpp"
#include "watched.hpp"

namespace {

using collx::status;
using collx::transport::shm;
using flat = collx::algo::direct_one_shot;

constexpr std::size_t count = 64 * 1024;

// In memory that both processes share, and the library does not know.
struct stage {
  std::atomic<int> failed{0}, looked{0};
};
void wait_for(std::atomic<int>& word) {
  while (word.load() == 0) sched_yield();
}

// Rank 0 calls, fails for want of rank 1, and writes something else to its buffer; then rank 1 calls.
// call(comm, buffer): returns how it ended.
template <class Buffer, class Call>
int late_reader(collx::communicator<shm>& comm, stage& s, Buffer& buffer, Call const& call) {
  if (comm.rank() == 1) {
    wait_for(s.failed);
    status const outcome = call(comm, buffer);
    s.looked = 1;
    return outcome == status::aborted ? 0 : 1;
  }
  std::fill_n(buffer.data(), count, 1);
  comm.timeout_us(50'000);
  status const outcome = call(comm, buffer);
  std::fill_n(buffer.data(), count, 1000);
  s.failed = 1;
  wait_for(s.looked);
  return outcome == status::timeout ? 0 : 2;
}

template <class RankMain>
void on_two(RankMain const& rank_main, collx::transport::settings const& chosen) {
  void* const shared =
      mmap(nullptr, sizeof(stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  auto* const s = new (shared) stage;
  for (int const code : watched::on_processes(
           2, [&](collx::communicator<shm>& comm) { return rank_main(comm, *s); }, chosen))
    CHECK(code == 0);
  munmap(shared, sizeof(stage));
}

}  // namespace

TEST_CASE("shm: who comes late does not read symmetric memory of a call that failed") {
  on_two(
      [](auto& comm, stage& s) {
        auto input = comm.template allocate<int>(count);
        return late_reader(comm, s, input, [](auto& c, auto& in) {
          std::vector<int> sum(c.rank() == 1 ? count : 0);
          return collx::try_reduce<flat>(c, in, sum, collx::sum, 1);
        });
      },
      {});
}
