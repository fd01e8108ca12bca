// SPDX-License-Identifier: Apache-2.0
// What kernels do with memory that a switch adds up in, run by threads: the switch is played by a loop over
// all replicas.
#include "collx/exec/multicast_lane.hpp"

#include <atomic>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/exec/host_executor.hpp"
#include "collx/exec/lane_cut.hpp"
#include "transport/window_group.hpp"

namespace {

using namespace collx;
using team_t = device_test::host_team;
using meeting = contract::barrier::member<algo::direct_one_shot>;

struct vector {
  int elements[4];
};

// All replicas, as the one address has them.
struct played_switch {
  std::vector<std::vector<vector>>* replicas;

  void begin() const noexcept {}
  void end() const noexcept {}
  [[nodiscard]] vector sum(std::size_t i) const noexcept {
    vector all{};
    for (auto const& each : *replicas)
      for (int e = 0; e < 4; ++e) all.elements[e] += each[i].elements[e];
    return all;
  }
  void store(std::size_t i, vector const& v) const noexcept {
    for (auto& each : *replicas) each[i] = v;
  }
};

// Several calls in a row, and between them what a kernel before the next one would do: each rank adds to its
// own.
void try_calls(window_group::traits const& chosen, std::size_t vectors) {
  CAPTURE(chosen.size);
  CAPTURE(chosen.lanes);
  CAPTURE(vectors);
  constexpr int calls = 3;
  auto const n = static_cast<std::size_t>(chosen.size);
  window_group::group all(chosen);
  std::vector<std::vector<vector>> replicas(n, std::vector<vector>(vectors));
  std::vector<exec::lane_workspace> workspaces(n * static_cast<std::size_t>(chosen.lanes));
  // Kernels of one rank begin when the last ones are done, all of them.
  std::vector<std::unique_ptr<std::barrier<>>> streams;
  for (std::size_t r = 0; r < n; ++r)
    streams.push_back(std::make_unique<std::barrier<>>(chosen.lanes * chosen.threads));
  std::atomic<int> failed{0};
  std::atomic<std::size_t> wrong{0};
  all.run([](rank_t) { return true; },
          [&](rank_t r, int lane, team_t& team) {
            auto const at = static_cast<std::size_t>(r);
            problem const p{r, chosen.size};
            auto const nothing = [&] {
              return exec::even_buffers<contract::barrier, std::byte>(p, nullptr, nullptr, false);
            };
            exec::chunk_map const map =
                exec::map_lanes<meeting>(p, nothing, 0, 1, chosen.staging_bytes, chosen.lanes);
            auto& workspace = workspaces[static_cast<std::size_t>(r * chosen.lanes + lane)];
            transport::windows::lane_port const port(all.view(r), lane);
            bool const alone = lane == 0 && team.rank() == 0;
            int expected = 0;
            for (int call = 0; call < calls; ++call) {
              if (alone)
                for (std::size_t i = 0; i < vectors; ++i)
                  for (int& e : replicas[at][i].elements) e += r + 1 + static_cast<int>(i);
              streams[at]->arrive_and_wait();
              if (team.rank() == 0) workspace.failed = 0;
              team.sync();
              exec::no_operator const none;
              exec::meeting_machine<team_t, transport::windows::lane_port> machine(team, port, workspace, map,
                                                                                   none);
              // Relaxed, here and below: read after all threads have ended.
              if (!exec::reduce_replicas<meeting>(machine, team, p, played_switch{&replicas}, vectors, lane,
                                                  chosen.lanes))
                failed.fetch_add(1, std::memory_order_relaxed);
              streams[at]->arrive_and_wait();
              expected = chosen.size * expected + chosen.size * (chosen.size + 1) / 2;
              if (!alone) continue;
              int factor =
                  0;  // of i: every call multiplies by the ranks what was there, and adds one more of each
              for (int c = 0; c <= call; ++c) factor = chosen.size * (factor + 1);
              for (std::size_t i = 0; i < vectors; ++i)
                for (int const e : replicas[at][i].elements)
                  wrong.fetch_add(e != expected + factor * static_cast<int>(i), std::memory_order_relaxed);
            }
          });
  CHECK(failed.load(std::memory_order_relaxed) == 0);
  CHECK(wrong.load(std::memory_order_relaxed) == 0);
}

}  // namespace

TEST_CASE("every replica ends with the sum of all, whoever reduces which part") {
  for (rank_t const size : {1, 2, 3, 4})
    for (std::size_t const vectors : {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{500}}) {
      try_calls({.size = size, .lanes = 2}, vectors);
      try_calls({.size = size, .threads = 2, .packet_bytes = 256}, vectors);
      try_calls({.size = size, .lanes = 3, .threads = 2, .reaches_all = false}, vectors);
    }
}

TEST_CASE("a rank that never comes ends the others") {
  window_group::group all({.size = 3, .timeout_ns = 50'000'000});
  std::vector<std::vector<vector>> replicas(3, std::vector<vector>(10));
  std::vector<exec::lane_workspace> workspaces(3);
  std::atomic<int> failed{0};
  all.run([](rank_t r) { return r != 1; },
          [&](rank_t r, int lane, team_t& team) {
            problem const p{r, 3};
            auto const nothing = [&] {
              return exec::even_buffers<contract::barrier, std::byte>(p, nullptr, nullptr, false);
            };
            exec::chunk_map const map = exec::map_lanes<meeting>(p, nothing, 0, 1, 65536, 1);
            auto& workspace = workspaces[static_cast<std::size_t>(r)];
            workspace.failed = 0;
            transport::windows::lane_port const port(all.view(r), lane);
            exec::no_operator const none;
            exec::meeting_machine<team_t, transport::windows::lane_port> machine(team, port, workspace, map,
                                                                                 none);
            // Relaxed: read after all threads have ended.
            if (!exec::reduce_replicas<meeting>(machine, team, p, played_switch{&replicas}, 10, lane, 1))
              failed.fetch_add(1, std::memory_order_relaxed);
          });
  CHECK(failed.load(std::memory_order_relaxed) == 2);
  for (auto const& each : replicas) CHECK(each[3].elements[0] == 0);
}
