// SPDX-License-Identifier: Apache-2.0
// Urgent requests overtake on processes and over sockets, as on threads (priority.cpp): what tells it is the
// number of bytes of the large request that a rank has sent when the small one is done.
// ctest: TIMEOUT 300
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/ring.hpp"
#include "collx/collx.hpp"
#include "is_sample.hpp"
#include "require.hpp"
#include "transport/counting.hpp"
#include "transport/wired.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
constexpr auto urgent = collx::priority::urgent;

// Two large requests, which take both ordinary lanes, and a small one after them: another ordinary one would
// wait for the first. Around a ring nobody gets ahead of the slowest, who has to begin all of them before
// anything comes to its end; so what has been sent of the large ones by then is what was moved along while
// the small one took its turns.
template <class Transport>
void overtake(collx::communicator<Transport>& comm) {
  rank_t const n = comm.size();
  std::vector<float> large(2'000'000, 1.0f), second = large, small(4, 2.0f);
  auto const sent = [&] { return comm.engine().endpoint().bytes(); };
  std::uint64_t const whole = [&] {
    std::uint64_t const before = sent();
    std::vector<float> same(large);
    collx::start::all_reduce<collx::algo::ring>(comm, same).wait();
    return sent() - before;
  }();
  for (int round = 0; round < 2; ++round) {
    collx::barrier(comm);
    std::uint64_t const before = sent();
    auto slow = collx::start::all_reduce<collx::algo::ring>(comm, large);
    auto as_slow = collx::start::all_reduce<collx::algo::ring>(comm, second);
    auto quick = collx::start::all_reduce<collx::automatic, urgent>(comm, small);
    quick.wait();
    std::uint64_t const moved = sent() - before;
    require(slow.try_test() == collx::status::pending, "the large one was first");
    require(as_slow.try_test() == collx::status::pending, "the second large one was first");
    require(moved < whole, "of twice " + std::to_string(whole) + " bytes the large ones had sent " +
                               std::to_string(moved) + " when the urgent one was done");
    slow.wait();
    as_slow.wait();
  }
  float const twice = static_cast<float>(n * n);
  require(large[1'999'999] == twice && second[0] == twice && small[3] == 2 * twice, "a wrong sum");
}

constexpr rank_t size_max = sample::is_sample ? 3 : 4;

}  // namespace

TEST_CASE("priority: a small urgent request overtakes a large one between processes") {
  using transport = counting<collx::transport::shm>;
  for (rank_t size = 2; size <= size_max; ++size)
    for (int const code :
         watched::on_processes<transport>(size, [](collx::communicator<transport>& comm) { overtake(comm); },
                                          {.staging_bytes = 64 * 1024}))
      CHECK(code == 0);
}

TEST_CASE("priority: and over sockets") {
  using transport = counting<collx::transport::tcp>;
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = 64 * 1024;
  for (rank_t size = 2; size <= size_max; ++size)
    wired::on_wired_threads<transport>(size, chosen,
                                       [](collx::communicator<transport>& comm) { overtake(comm); });
}
