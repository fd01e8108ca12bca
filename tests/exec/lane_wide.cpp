// SPDX-License-Identifier: Apache-2.0
// Kernels' text where it is cut: schedules of more steps than are found out about at once, and teams of so
// many threads that several messages are dealt with at a time, by a part of them each.
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/ring.hpp"
#include "exec/lane_call.hpp"

namespace {

using namespace collx;
using window_group::team_t;

// Every rank has its number in all elements but the last, which is one more. Returns how many ranks have
// wrong sums, or failed.
template <schedule S>
int wrong_ranks(window_group::traits const& chosen, std::size_t count, int calls) {
  auto const n = static_cast<std::size_t>(chosen.size), lanes = static_cast<std::size_t>(chosen.lanes);
  window_group::group all(chosen);
  std::vector<std::vector<int>> in, out(n, std::vector<int>(count, -1));
  int total = 0;
  for (rank_t r = 0; r < chosen.size; ++r) {
    in.emplace_back(count, r);
    in.back().back() = r + 1;
    total += r;
  }
  std::vector<int> expected(count, total);
  expected.back() += chosen.size;
  std::vector<exec::lane_workspace> workspaces(n * lanes);
  std::vector<int> failed(n * lanes);
  all.run([](rank_t) { return true; },
          [&](rank_t r, int lane, team_t& team) {
            auto const at = static_cast<std::size_t>(r);
            std::size_t const mine = at * lanes + static_cast<std::size_t>(lane);
            for (int call = 0; call < calls; ++call) {
              bool const worked =
                  window_group::perform<S>(all, r, lane, team, workspaces[mine], in[at].data(),
                                           out[at].data(), {chosen.size, count}, sum);
              if (!worked && team.rank() == 0) ++failed[mine];
              team.sync();  // as where a kernel ends: the call is counted
            }
          });
  int wrong = 0;
  for (std::size_t r = 0; r < n; ++r) wrong += out[r] != expected;
  for (int const each : failed) wrong += each;
  return wrong;
}

}  // namespace

TEST_CASE("a schedule may have more steps than are found out about at once") {
  for (rank_t const size : {rank_t{9}, rank_t{12}}) {  // 17 and 23 steps of 16
    REQUIRE(algo::ring::all_reduce::step_count({0, size}) > exec::lane_steps_at_once);
    for (bool const reaches_all : {false, true})
      for (std::size_t const count : {std::size_t{1}, std::size_t{500}, std::size_t{20'000}}) {
        CAPTURE(size);
        CAPTURE(reaches_all);
        CAPTURE(count);
        window_group::traits const chosen{
            .size = size, .threads = 2, .packet_bytes = 128, .reaches_all = reaches_all};
        CHECK(wrong_ranks<algo::ring::all_reduce>(chosen, count, 2) == 0);
      }
  }
}

TEST_CASE("a team is parted where several messages go as packets") {
  constexpr int threads = 2 * exec::part_threads_min;
  for (auto const width : {transport::windows::packet_width::narrow, transport::windows::packet_width::wide})
    for (std::size_t const count : {std::size_t{1}, std::size_t{31}, std::size_t{256}}) {
      CAPTURE(count);
      window_group::traits const chosen{
          .size = 3, .threads = threads, .packet_bytes = 1024, .width = width, .reaches_all = false};
      CHECK(wrong_ranks<algo::direct_one_shot::all_reduce>(chosen, count, 2) == 0);
      CHECK(wrong_ranks<algo::direct_two_shot::all_reduce>(chosen, count, 2) == 0);
    }
}
