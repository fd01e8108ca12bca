// SPDX-License-Identifier: Apache-2.0
// Requests in flight take turns, and urgent ones overtake.
#include <vector>

#include <doctest/doctest.h>

#include "collx/bootstrap/mailbox.hpp"
#include "collx/bootstrap/threads.hpp"
#include "collx/collx.hpp"
#include "require.hpp"
#include "watched.hpp"

namespace {

using collx::rank_t;
constexpr auto urgent = collx::priority::urgent;

}  // namespace

TEST_CASE("priority: a small urgent request does not wait for a large one to end") {
  for (rank_t const size : {2, 3, 4})
    watched::on_threads(size,
                        [](auto& comm) {
                          // Some hundred fragments.
                          std::vector<float> large(4'000'000, 1.0f), small(4, 2.0f);
                          for (int round = 0; round < 3; ++round) {
                            auto slow = collx::start::all_reduce(comm, large);
                            auto quick = collx::start::all_reduce<collx::automatic, urgent>(comm, small);
                            quick.wait();
                            require(slow.try_test() == collx::status::pending, "the large one was first");
                            slow.wait();
                          }
                          float const n = static_cast<float>(comm.size());
                          require(large[3'999'999] == n * n * n && small[0] == 2 * n * n * n, "a wrong sum");
                        },
                        {.staging_bytes = 64 * 1024});
}

TEST_CASE("priority: where it is the only template argument it holds, too") {
  watched::on_threads(2,
                      [](auto& comm) {
                        // Both ordinary lanes are taken: another ordinary one would wait for the first.
                        std::vector<float> first(4'000'000, 1.0f), second = first;
                        std::vector<float> small(4, 2.0f), again = small;
                        auto slow = collx::start::all_reduce(comm, first);
                        auto as_slow = collx::start::all_reduce(comm, second);
                        auto quick = collx::start::all_reduce<urgent>(comm, small);
                        quick.wait();
                        require(slow.try_test() == collx::status::pending, "started");
                        auto kept = collx::persistent::all_reduce<urgent>(comm, again);
                        kept.start();
                        kept.wait();
                        require(slow.try_test() == collx::status::pending, "persistent");
                        slow.wait();
                        as_slow.wait();
                        require(small[0] == 4 && again[0] == 4 && second[9] == 2, "a wrong sum");
                      },
                      {.staging_bytes = 64 * 1024});
}

TEST_CASE("priority: without it, the small one on a lane of its own takes turns with the large one") {
  watched::on_threads(2,
                      [](auto& comm) {
                        std::vector<float> large(4'000'000, 1.0f), small(4, 2.0f);
                        auto slow = collx::start::all_reduce(comm, large);
                        auto next = collx::start::all_reduce(comm, small);
                        next.wait();
                        require(slow.try_test() == collx::status::pending, "the large one was first");
                        slow.wait();
                      },
                      {.staging_bytes = 64 * 1024});
}

TEST_CASE("priority: many urgent ones behind each other, between large ones, on messages") {
  collx::bootstrap::mailbox_ranks<> ranks(4, 11, {.staging_bytes = 64 * 1024});
  using request = collx::request<collx::transport::mailbox::endpoint>;
  std::vector<std::vector<int>> large(4, std::vector<int>(100'000, 1)), small(4, std::vector<int>(3, 1));
  collx::array<request> slow(4);
  for (rank_t r = 0; r < 4; ++r)
    slow[static_cast<std::size_t>(r)] =
        collx::start::all_reduce<collx::algo::ring>(ranks[r], large[static_cast<std::size_t>(r)]);
  for (int round = 0; round < 5; ++round) {
    collx::array<request> quick(4);
    for (rank_t r = 0; r < 4; ++r)
      quick[static_cast<std::size_t>(r)] = collx::start::all_reduce<collx::algo::direct_one_shot, urgent>(
          ranks[r], small[static_cast<std::size_t>(r)]);
    REQUIRE(ranks.drive(quick) == collx::status::ok);
    CHECK(slow[0].try_test() == collx::status::pending);
  }
  REQUIRE(ranks.drive(slow) == collx::status::ok);
  CHECK(large[3][99'999] == 4);
  CHECK(small[2][2] == 4 * 4 * 4 * 4 * 4);
}
