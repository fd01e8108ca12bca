// SPDX-License-Identifier: Apache-2.0
// What ends a wait in a kernel: a deadline, a host that gives up, a peer that sends something else. Every
// other rank must end too, soon, and the report must name who was waited for.
#include <algorithm>
#include <atomic>
#include <string>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "collx/algo/ring.hpp"
#include "exec/lane_call.hpp"

namespace {

using namespace collx;
using window_group::team_t;
namespace windows = transport::windows;

constexpr std::size_t count_max = 40000;

// Runs an all_reduce of `counts[rank]` floats on the ranks with a count, each of which calls before(rank)
// first; returns whether any rank succeeded.
template <class Algorithm, class Before>
bool any_succeeds(window_group::group& all, std::vector<std::size_t> const& counts, Before const& before) {
  auto const n = counts.size();
  std::vector<std::vector<float>> in(n, std::vector<float>(count_max, 1.0f)), out = in;
  std::vector<exec::lane_workspace> lanes(n * static_cast<std::size_t>(all.chosen().lanes));
  std::atomic<bool> any{false};
  all.run([&](rank_t r) { return counts[static_cast<std::size_t>(r)] != 0; },
          [&](rank_t r, int lane, team_t& team) {
            auto const i = static_cast<std::size_t>(r);
            auto& workspace =
                lanes[i * static_cast<std::size_t>(all.chosen().lanes) + static_cast<std::size_t>(lane)];
            if (team.rank() == 0) before(r);
            team.sync();
            oracle::setting const how{all.chosen().size, counts[i]};
            // Relaxed: read after all threads have ended.
            if (window_group::perform<typename Algorithm::all_reduce>(all, r, lane, team, workspace,
                                                                      in[i].data(), out[i].data(), how, sum))
              any.store(true, std::memory_order_relaxed);
          });
  return any.load(std::memory_order_relaxed);
}
template <class Algorithm>
bool any_succeeds(window_group::group& all, std::vector<std::size_t> const& counts) {
  return any_succeeds<Algorithm>(all, counts, [](rank_t) {});
}

// Until the first message from a peer lies in a rank's window: from then on the peer is not late.
void wait_for_message(window_group::group const& all, rank_t rank, rank_t peer, std::size_t bytes) {
  transport::windows::lane_port const port(all.view(rank), 0);
  auto const is_here = [&] {
    windows::delivery letter;
    if (!port.packs(bytes)) return port.arrived(peer, letter);
    std::size_t came = 0;
    return port.take_packets(device::solo_team(), peer, port.next_from(peer), 0, bytes, came) == status::ok;
  };
  while (!is_here() && !port.is_stopped()) sched_yield();
}

status code_of(window_group::group const& all, rank_t rank) {
  return static_cast<status>(all.report(rank).code);
}

}  // namespace

TEST_CASE("a rank that never comes is named, and everybody ends") {
  for (std::size_t const packet_bytes : {std::size_t{0}, std::size_t{1024}})
    for (std::size_t const count : {std::size_t{3}, count_max}) {
      CAPTURE(packet_bytes);
      CAPTURE(count);
      window_group::group all({.size = 4, .threads = 2, .packet_bytes = packet_bytes});
      all.timeout_ns(0, 50'000'000);  // the others wait for longer than this test does
      auto const only_one_is_late = [&](rank_t r) {
        for (rank_t const peer : {1, 3})
          if (r == 0) wait_for_message(all, r, peer, count * sizeof(float));
      };
      REQUIRE_FALSE(any_succeeds<algo::direct_one_shot>(all, {count, count, 0, count}, only_one_is_late));
      CHECK(code_of(all, 0) == status::timeout);
      CHECK(all.report(0).peer == 2);
      for (rank_t const r : {1, 3}) CHECK(code_of(all, r) == status::aborted);
      CHECK(code_of(all, 2) == status::ok);  // it was never asked
    }
}

TEST_CASE("in a ring the deadline passes at the neighbour of the rank that is missing") {
  window_group::group all({.size = 3, .lanes = 2, .timeout_ns = 50'000'000});
  REQUIRE_FALSE(any_succeeds<algo::ring>(all, {count_max, 0, count_max}));
  CHECK(code_of(all, 0) != status::ok);
  CHECK(code_of(all, 2) != status::ok);
}

TEST_CASE("ranks that disagree about the count are told") {
  window_group::group all({.size = 2});
  REQUIRE_FALSE(any_succeeds<algo::direct_one_shot>(all, {1000, 1001}));
  bool const told = code_of(all, 0) == status::mismatch || code_of(all, 1) == status::mismatch;
  CHECK(told);
  for (rank_t r = 0; r < 2; ++r)
    if (code_of(all, r) == status::mismatch) CHECK(all.report(r).bytes == (r == 0 ? 4004 : 4000));
}

TEST_CASE("they are told of packets, too, of letters where packets are due, and the other way round") {
  struct pair {
    std::size_t of_zero, of_one;
  };
  constexpr std::size_t of_packets = 256;  // floats, at most
  for (windows::packet_width const width : {windows::packet_width::narrow, windows::packet_width::wide})
    for (int const threads : {1, 3})
      for (pair const counts : {pair{1, 2}, pair{2, 1}, pair{1, of_packets}, pair{of_packets - 1, of_packets},
                                pair{of_packets, of_packets + 1}, pair{of_packets + 1, of_packets},
                                pair{1, count_max}, pair{count_max, 1}}) {
        CAPTURE(threads);
        CAPTURE(counts.of_zero);
        CAPTURE(counts.of_one);
        window_group::group all(
            {.size = 2, .threads = threads, .packet_bytes = of_packets * sizeof(float), .width = width});
        REQUIRE_FALSE(any_succeeds<algo::direct_one_shot>(all, {counts.of_zero, counts.of_one}));
        // Whoever comes first says so; the other one may find the group stopped.
        int told = 0;
        for (rank_t r = 0; r < 2; ++r) {
          if (code_of(all, r) == status::aborted) continue;
          CHECK(code_of(all, r) == status::mismatch);
          CHECK(all.report(r).peer == 1 - r);
          std::size_t const of_other = r == 0 ? counts.of_one : counts.of_zero;
          // A long message is the first of several.
          if (of_other != count_max) CHECK(all.report(r).bytes == of_other * sizeof(float));
          ++told;
        }
        CHECK(told > 0);
      }
}

TEST_CASE("who only receives is told, too, whether it expects more or less, and in which way it comes") {
  for (std::size_t const sent : {std::size_t{2}, std::size_t{290}})
    for (std::size_t const expected : {std::size_t{1}, std::size_t{3}, std::size_t{100}, std::size_t{300}}) {
      CAPTURE(sent);
      CAPTURE(expected);
      window_group::group all({.size = 2, .threads = 2, .packet_bytes = 1024});
      std::vector<float> data(count_max, 7.0f), got(count_max, -1.0f);
      exec::lane_workspace lanes[2] = {};
      all.run([](rank_t) { return true; },
              [&](rank_t r, int lane, team_t& team) {
                float* const memory = r == 0 ? data.data() : got.data();
                oracle::setting const how{2, r == 0 ? sent : expected, true};
                bool const worked = window_group::perform<algo::direct_one_shot::broadcast>(
                    all, r, lane, team, lanes[r], memory, memory, how, sum);
                if (r == 1) CHECK_FALSE(worked);
              });
      CHECK(code_of(all, 1) == status::mismatch);
      CHECK(all.report(1).peer == 0);
      CHECK(all.report(1).bytes == sent * sizeof(float));
      CHECK(got == std::vector<float>(count_max, -1.0f));  // nothing was stored
    }
}

TEST_CASE("a call ends when nobody reads its buffers any more") {
  window_group::group all({.size = 2});
  std::vector<float> data(count_max, 7.0f), got(count_max, 0.0f);
  exec::lane_workspace lanes[2] = {};
  std::atomic<bool> returned{false};
  all.run([](rank_t) { return true; },
          [&](rank_t r, int lane, team_t& team) {
            float* const memory = r == 0 ? data.data() : got.data();
            oracle::setting const how{2, count_max, true};
            if (r == 1) {
              transport::windows::lane_port const port(all.view(1), lane);
              transport::windows::delivery first;
              while (!port.arrived(0, first)) sched_yield();
              // The root has sent all it ever will, and could go on if nothing kept it. Relaxed: only a hint.
              for (int i = 0; i < 1000; ++i) CHECK_FALSE(returned.load(std::memory_order_relaxed));
            }
            CHECK(window_group::perform<algo::direct_one_shot::broadcast>(all, r, lane, team, lanes[r],
                                                                          memory, memory, how, sum));
            if (r != 0) return;
            returned.store(true, std::memory_order_relaxed);
            std::fill(data.begin(), data.end(), -1.0f);
          });
  CHECK(got == std::vector<float>(count_max, 7.0f));
}

TEST_CASE("who comes to a group that has failed does nothing, and says so for that call") {
  window_group::group all({.size = 3, .lanes = 2, .threads = 2, .timeout_ns = 50'000'000});
  REQUIRE_FALSE(any_succeeds<algo::ring>(all, {count_max, 0, 0}));
  REQUIRE(code_of(all, 0) == status::timeout);
  CHECK(code_of(all, 1) == status::ok);  // had not come yet, and nobody else can tell its host
  windows::view late = all.view(1);
  late.collective = "a late one", late.sequence = 7;
  std::vector<exec::lane_workspace> lanes(2);
  std::atomic<int> began{0};
  all.run([](rank_t r) { return r == 1; },
          [&](rank_t, int lane, team_t& team) {
            transport::windows::lane_port const port(late, lane);
            if (exec::may_begin(team, port, lanes[static_cast<std::size_t>(lane)]))
              began.fetch_add(1, std::memory_order_relaxed);  // relaxed: read after all threads have ended
          });
  CHECK(began.load(std::memory_order_relaxed) == 0);
  CHECK(code_of(all, 1) == status::aborted);
  CHECK(all.report(1).stopped_by == 1);
  CHECK(std::string(all.report(1).collective) == "a late one");
  CHECK(all.report(1).sequence == 7);
}

TEST_CASE("a group that has not failed may begin, on all threads") {
  window_group::group all({.size = 2, .threads = 3});
  std::vector<exec::lane_workspace> lanes(2);
  for (auto& each : lanes) each.failed = each.stopped = 1;  // whatever is left there of another call
  std::atomic<int> began{0};
  all.run([](rank_t) { return true; },
          [&](rank_t r, int lane, team_t& team) {
            transport::windows::lane_port const port(all.view(r), lane);
            if (exec::may_begin(team, port, lanes[static_cast<std::size_t>(r)]))
              began.fetch_add(1, std::memory_order_relaxed);  // relaxed: read after all threads have ended
          });
  CHECK(began.load(std::memory_order_relaxed) == 6);
  for (auto const& each : lanes) CHECK(each.failed == 0);
}

TEST_CASE("a host that gives up ends its kernels, and those of its peers") {
  window_group::group all({.size = 3, .threads = 2});
  all.stop();
  REQUIRE_FALSE(any_succeeds<algo::ring>(all, {count_max, 0, count_max}));
  CHECK(code_of(all, 0) == status::aborted);
  CHECK(code_of(all, 2) == status::aborted);
}

namespace {

// What every rank puts into its stream: all_reduces of so many floats each, one after the other, until one
// fails. Returns of how many calls each rank got sums of as many ones as there are ranks.
template <class Algorithm>
std::vector<int> good_calls(window_group::group& all, std::vector<std::vector<std::size_t>> const& counts) {
  auto const n = static_cast<std::size_t>(all.chosen().size);
  std::vector<std::vector<float>> in(n, std::vector<float>(count_max, 1.0f)), out = in;
  std::vector<exec::lane_workspace> lanes(n);
  std::vector<int> good(n);
  auto const call = [&](std::size_t r, int lane, team_t& team, std::size_t count) {
    team.sync();  // nobody looks at the last call's workspace any more
    if (count == 0) {
      windows::lane_port const port(all.view(static_cast<rank_t>(r)), lane);
      return exec::pass_empty_call(team, port, lanes[r]), true;
    }
    oracle::setting const how{all.chosen().size, count};
    return window_group::perform<typename Algorithm::all_reduce>(
        all, static_cast<rank_t>(r), lane, team, lanes[r], in[r].data(), out[r].data(), how, sum);
  };
  all.run([](rank_t) { return true; },
          [&](rank_t rank, int lane, team_t& team) {
            auto const r = static_cast<std::size_t>(rank);
            for (std::size_t const count : counts[r]) {
              if (!call(r, lane, team, count)) return;
              team.sync();
              auto const end = out[r].begin() + static_cast<std::ptrdiff_t>(count);
              if (team.rank() == 0)
                good[r] += std::count(out[r].begin(), end, static_cast<float>(n)) == end - out[r].begin();
            }
          });
  return good;
}

template <class Algorithm>
void leave_out_one_call(std::size_t packet_bytes, std::size_t count, int threads) {
  CAPTURE(packet_bytes);
  CAPTURE(count);
  CAPTURE(threads);
  window_group::group all({.size = 3, .threads = threads, .packet_bytes = packet_bytes});
  // As long as the others' calls, and none too few: nobody would wait in vain.
  auto const good = good_calls<Algorithm>(all, {{count, count}, {0, count, count}, {count, count}});
  int told = 0;
  for (rank_t r = 0; r < 3; ++r) {
    CAPTURE(r);
    CHECK(good[static_cast<std::size_t>(r)] <= (r == 1 ? 1 : 0));
    if (code_of(all, r) != status::mismatch) continue;
    CHECK(all.report(r).calls_ahead == (r == 1 ? -1 : 1));
    CHECK(all.report(r).calls == (r == 1 ? 1 : 0));
    ++told;
  }
  CHECK(told > 0);
}

}  // namespace

TEST_CASE("a rank that was given no elements is told of, however long the others' messages are") {
  for (int const threads : {1, 2})
    for (std::size_t const packet_bytes : {std::size_t{0}, std::size_t{1024}})
      for (std::size_t const count : {std::size_t{3}, count_max}) {
        leave_out_one_call<algo::direct_one_shot>(packet_bytes, count, threads);
        leave_out_one_call<algo::ring>(packet_bytes, count, threads);
      }
}

TEST_CASE("where no rank was given elements, the next call is right") {
  for (std::size_t const packet_bytes : {std::size_t{0}, std::size_t{1024}}) {
    CAPTURE(packet_bytes);
    window_group::group all({.size = 3, .threads = 2, .packet_bytes = packet_bytes});
    std::vector<std::size_t> const counts{5, 0, 0, count_max, 0, 5};
    CHECK(good_calls<algo::ring>(all, {counts, counts, counts}) == std::vector<int>(3, 6));
    for (rank_t r = 0; r < 3; ++r) CHECK(code_of(all, r) == status::ok);
  }
}

TEST_CASE("a group that has failed fails calls without elements, too") {
  window_group::group all({.size = 2, .timeout_ns = 50'000'000});
  REQUIRE_FALSE(any_succeeds<algo::ring>(all, {count_max, 0}));
  REQUIRE(code_of(all, 1) == status::ok);
  good_calls<algo::ring>(all, {{}, {0}});
  CHECK(code_of(all, 1) == status::aborted);
}
