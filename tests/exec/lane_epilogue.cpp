// SPDX-License-Identifier: Apache-2.0
// What is fused behind an all_reduce sees every element of the result, once, whoever completes it.
#include <atomic>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/recursive_halving_doubling.hpp"
#include "collx/algo/ring.hpp"
#include "exec/lane_call.hpp"

namespace {

using namespace collx;

template <class Algorithm>
void step_everywhere(rank_t size, int lanes, int threads, std::size_t count) {
  CAPTURE(Algorithm::name);
  CAPTURE(size);
  CAPTURE(count);
  window_group::group all({.size = size, .lanes = lanes, .threads = threads, .packet_bytes = 256});
  auto const n = static_cast<std::size_t>(size);
  std::vector<std::vector<int>> in(n, std::vector<int>(count)), out = in, weights = in, calls = in;
  std::vector<exec::lane_workspace> workspaces(n * static_cast<std::size_t>(lanes));
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t i = 0; i < count; ++i) in[r][i] = static_cast<int>(i * (r + 1));
  std::atomic<int> failed{0};
  all.run([](rank_t) { return true; },
          [&](rank_t r, int lane, window_group::team_t& team) {
            auto const i = static_cast<std::size_t>(r);
            auto& mine = workspaces[i * static_cast<std::size_t>(lanes) + static_cast<std::size_t>(lane)];
            auto const step = [&weights, &calls, i](std::size_t at, int sum) {
              weights[i][at] -= 2 * sum;
              ++calls[i][at];
            };
            oracle::setting const how{size, count};
            // Relaxed: read after all threads have ended.
            if (!window_group::perform<typename Algorithm::all_reduce>(all, r, lane, team, mine, in[i].data(),
                                                                       out[i].data(), how, sum, step))
              failed.fetch_add(1, std::memory_order_relaxed);
          });
  CHECK(failed.load(std::memory_order_relaxed) == 0);
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t i = 0; i < count; ++i)
      wrong += calls[r][i] != 1 || weights[r][i] != -static_cast<int>(i * n * (n + 1));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("an epilogue sees each element of the result once") {
  for (rank_t const size : {1, 2, 3, 4})
    for (std::size_t const count : {std::size_t{1}, std::size_t{7}, std::size_t{500}, std::size_t{60000}}) {
      step_everywhere<algo::direct_one_shot>(size, 1, 2, count);
      step_everywhere<algo::direct_two_shot>(size, 2, 2, count);
      step_everywhere<algo::ring>(size, 3, 1, count);
      step_everywhere<algo::recursive_halving_doubling>(size, 2, 1, count);
    }
}
