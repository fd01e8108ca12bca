// SPDX-License-Identifier: Apache-2.0
// What is urgent does not wait until a block that is lent whole is copied: who has other requests in flight
// copies it a fragment at a time, and gives them their turns in between.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/collective/all_to_all_v.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/transport/threads.hpp"
#include "exec/lent_calls.hpp"
#include "meeting.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
using collx::algo::direct_one_shot;
using collx::transport::threads;
using lent::block;

constexpr int lane_of_blocking_calls = 0, urgent_lane = threads::endpoint::lane_count - 1;

// Tells a test of the first message of a blocking call, and before each urgent one is let go.
struct told_endpoint : threads::endpoint {
  using threads::endpoint::endpoint;
  [[nodiscard]] bool arrived(int lane, rank_t peer, collx::transport::arrival& what) noexcept {
    if (!threads::endpoint::arrived(lane, peer, what)) return false;
    if (lane == lane_of_blocking_calls && at_first_message) std::exchange(at_first_message, nullptr)();
    return true;
  }
  void consume(int lane, rank_t peer) noexcept {
    if (lane == urgent_lane && before_urgent) before_urgent();
    threads::endpoint::consume(lane, peer);
  }
  std::function<void()> at_first_message, before_urgent;
};

struct told {
  using world = threads::world;
  using endpoint = told_endpoint;
  using membership = threads::membership_of<told>;
};

}  // namespace

TEST_CASE("lent blocks: an urgent request waits for a fragment of them at most") {
  // Rank 1 lends rank 0 a block, and has then nothing else in flight. Rank 2, which has none for it, begins
  // what is urgent only when that block is there: so rank 0 has all of the one to copy when the other comes.
  constexpr std::size_t fragment = 64 * 1024 / 2 / 2 / sizeof(int);
  std::size_t copied_before_urgent = 0;
  int sum = 0;
  meeting block_is_there(2), urgent_is_there(2);
  watched::on_threads<told>(
      3,
      [&](collx::communicator<told>& comm) {
        rank_t const rank = comm.rank();
        std::vector<std::size_t> given{0, 0, 0}, taken{0, 0, 0};
        if (rank == 1) given[0] = block;
        if (rank == 0) taken[1] = block;
        std::vector<int> in(rank == 1 ? block : 0), out(rank == 0 ? block : 0, -1);
        if (rank == 1) lent::fill(in, 1, 0);
        int one = 1, all = 0;
        if (rank == 0) {
          comm.engine().endpoint().at_first_message = [&] {
            block_is_there.attend(comm);
            urgent_is_there.attend(comm);
          };
          comm.engine().endpoint().before_urgent = [&] {
            auto const copied = std::count_if(out.begin(), out.end(), [](int i) { return i >= 0; });
            copied_before_urgent = static_cast<std::size_t>(copied);
          };
        }
        if (rank == 2) block_is_there.attend(comm);
        auto urgent = collx::start::reduce<direct_one_shot, collx::priority::urgent>(
            comm, std::span(&one, 1), std::span(&all, 1), collx::sum, 0);
        if (rank == 2) urgent_is_there.attend(comm);
        collx::all_to_all_v<direct_one_shot>(comm, collx::blocks<int const>{in, given},
                                             collx::blocks<int>{out, taken});
        urgent.wait();
        if (rank != 0) return;
        lent::check(out, 1, 0, "all_to_all_v");
        sum = all;
      },
      lent::small_staging);
  CHECK(sum == 3);
  CHECK(copied_before_urgent > 0);
  CHECK(copied_before_urgent <= fragment);
}
