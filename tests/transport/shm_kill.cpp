// SPDX-License-Identifier: Apache-2.0
// A process is killed (SIGKILL) in the middle of a collective, at one send after the other, and with one
// message after the other read and not acknowledged: every survivor gets an error that names the collective,
// its number and the lost rank, long before the deadline.
// ctest: TIMEOUT 300
// thread sanitizer: no, each rank is a process of one thread
#include "collx/bootstrap/processes.hpp"
#include "collx/collective/exchange.hpp"
#include "sample.hpp"
#include "shared_with_forks.hpp"
#include "transport/killing.hpp"
#include "watched.hpp"

namespace {

using namespace killing_ranks;

struct over_shm {
  using transport = collx::transport::faulty<collx::transport::shm>;
  template <class RankMain>
  static auto run(rank_t size, RankMain const& rank_main, collx::transport::settings const& chosen) {
    return watched::on_processes<transport>(size, rank_main, chosen);
  }
};
using communicator = collx::communicator<over_shm::transport>;

// A process that a sanitizer watches takes a tenth of a second to start: some of them.
constexpr std::uint64_t kill_stride = sample::is_sample ? 3 : 1;

// Everybody is there, and knows everybody, when one is killed.
void lose(collx::communicator<collx::transport::shm>& comm, arrivals& met, rank_t victim) {
  collx::barrier(comm);
  met.come();
  met.wait_for(comm.size());
  if (comm.rank() == victim) raise(SIGKILL);
}

}  // namespace

TEST_CASE("shm: every survivor of a killed rank gets an error that names it, whatever the schedule") {
  kill_in_every_schedule<over_shm>();
}

TEST_CASE("shm: a rank killed at any of its sends, or before any of its receipts, is noticed") {
  kill_at_each<over_shm>(40, kill_stride);
}

TEST_CASE("shm: a rank killed while requests are in flight is noticed by wait and by test") {
  for (bool const at_send : {true, false})
    for (std::uint64_t at = 1; at <= 10; at += at_send ? 1 : 3) {
      killing const how{3, 1, at, 1000, at_send};
      CAPTURE(at);
      CAPTURE(at_send);
      auto const three = [&](communicator& comm) {
        std::vector<int> a(how.count), b(how.count), c(how.count);
        auto first = collx::start::all_reduce<collx::algo::ring>(comm, a);
        auto second = collx::start::all_reduce<collx::algo::direct_two_shot>(comm, b);
        auto third = collx::start::all_reduce<collx::algo::recursive_doubling>(comm, c);
        while (!third.test()) sched_yield();
        first.wait();
        second.wait();
      };
      kill_and_check<over_shm>(how, "all_reduce", three, 3);
    }
}

TEST_CASE("shm: a rank is noticed that is killed while others wait for it to read what they have staged") {
  shared_with_forks<arrivals> met;
  auto const codes = watched::on_processes(
      2,
      [&](auto& comm) {
        lose(comm, *met, 1);
        std::vector<int> more_than_fits(100'000);
        status const outcome = collx::try_broadcast<collx::algo::chain>(comm, more_than_fits, 0);
        return outcome == status::peer_lost && comm.failure().peer == 1 ? 0 : 1;
      },
      {.timeout_us = 60'000'000, .staging_bytes = 64 * 1024, .single_copy_bytes = 0});
  CHECK(codes[0] == 0);
  CHECK(codes[1] == 128 + SIGKILL);
}

TEST_CASE("shm: who lists messages for a rank that is killed reaches the others, or notices") {
  for (std::size_t const bytes : {1'000u, 1'000'000u}) {
    CAPTURE(bytes);
    shared_with_forks<arrivals> met;
    auto const codes = watched::on_processes(
        3,
        [&](auto& comm) {
          lose(comm, *met, 1);
          std::vector<char> for_lost(bytes), large(1'000'000);
          collx::exchange list(comm);
          if (comm.rank() == 2) {
            list.receive(large, 0);
          } else {
            list.send(for_lost, 1);
            list.send(large, 2);
          }
          status const outcome = list.try_run();
          // A short message is sent when it is staged; a long one waits for its receiver.
          bool const has_done = outcome == status::ok && (comm.rank() == 2 || bytes < large.size());
          bool const told = outcome == (comm.rank() == 0 ? status::peer_lost : status::aborted);
          return has_done || (told && comm.failure().peer == 1) ? 0 : 1;
        },
        {.timeout_us = 60'000'000, .staging_bytes = 64 * 1024, .single_copy_bytes = 0});
    CHECK(codes[0] == 0);
    CHECK(codes[2] == 0);
  }
}

TEST_CASE("shm: a lost rank is noticed where everybody waits first for a request that others hold up") {
  shared_with_forks<arrivals> met;
  auto const codes = watched::on_processes(
      3,
      [&](auto& comm) {
        lose(comm, *met, 2);
        // Rank 0 waits for 1, which waits for 2; and the other way round.
        std::vector<int> down(4, 1), total(4), up(4);
        auto reduced = collx::start::reduce<collx::algo::chain>(comm, down, total, collx::sum, 0);
        auto spread = collx::start::broadcast<collx::algo::chain>(comm, up, 2);
        status const outcome = comm.rank() == 0 ? reduced.try_wait() : spread.try_wait();
        bool const told = outcome == status::peer_lost || outcome == status::aborted;
        return told && comm.failure().peer == 2 ? 0 : 1;
      },
      {.timeout_us = 60'000'000, .single_copy_bytes = 0});
  CHECK(codes[0] == 0);
  CHECK(codes[1] == 0);
  CHECK(codes[2] == 128 + SIGKILL);
}

TEST_CASE("shm: ranks killed as seeds have it are noticed") {
  kill_from_seeds<over_shm>(60 / kill_stride, "test_transport_shm_kill");
}
