// SPDX-License-Identifier: Apache-2.0
// Groups that have passed billions of messages: their numbers are longer than what a packet carries of them,
// and a slot may hold nothing but zeros still, or packets of long ago.
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/direct.hpp"
#include "exec/lane_call.hpp"

namespace {

using namespace collx;
using window_group::group, window_group::team_t;
namespace windows = transport::windows;

constexpr std::uint64_t wraps = std::uint64_t{1} << 32;
constexpr std::size_t of_packets = 256;  // floats, at most

// As if both ranks of a group had sent each other so many messages on lane 0, all of which are taken.
void have_sent(group& all, std::uint64_t messages) {
  for (rank_t r = 0; r < 2; ++r) {
    windows::view const& mine = all.view(r);
    auto& own = *reinterpret_cast<windows::book*>(mine.own + mine.where.of(0, 1 - r));
    own.sent = own.taken = own.staged_until[0] = own.staged_until[1] = messages;
    reinterpret_cast<windows::channel*>(mine.own + mine.where.from(0, 1 - r))->consumed = messages;
  }
}

// What both ranks get of an all_reduce of ones and twos; empty where it fails.
std::vector<float> sums(group& all, std::size_t count) {
  std::vector<float> in[2], out[2];
  exec::lane_workspace lanes[2] = {};
  bool worked[2] = {};
  for (std::size_t r = 0; r < 2; ++r) in[r].assign(count, static_cast<float>(r + 1)), out[r].assign(count, 0);
  all.run([](rank_t) { return true; },
          [&](rank_t r, int lane, team_t& team) {
            bool const done = window_group::perform<algo::direct_one_shot::all_reduce>(
                all, r, lane, team, lanes[r], in[r].data(), out[r].data(), {2, count}, sum);
            if (team.rank() == 0) worked[r] = done;
          });
  if (!worked[0] || !worked[1] || out[0] != out[1]) return {};
  return out[0];
}

bool is_told_of_packets(group const& all, std::size_t& bytes) {
  return windows::lane_port(all.view(0), 0).came_as_packets(1, bytes);
}

}  // namespace

TEST_CASE("memory where no packets have been is none, whatever the number of the message") {
  for (std::uint64_t const before : {std::uint64_t{0}, wraps - 2, wraps - 1, wraps, ~std::uint64_t{0}}) {
    CAPTURE(before);
    group all({.size = 2, .packet_bytes = of_packets * sizeof(float)});
    have_sent(all, before);
    std::size_t bytes = 77;
    CHECK_FALSE(is_told_of_packets(all, bytes));
    CHECK(bytes == 77);
  }
}

TEST_CASE("neither are packets of long ago where a letter is waited for") {
  group all({.size = 2, .packet_bytes = of_packets * sizeof(float)});
  REQUIRE(sums(all, 4) == std::vector<float>(4, 3.0f));  // message 0
  for (std::uint64_t const before : {8 * wraps, wraps, wraps << 8}) {
    CAPTURE(before);
    have_sent(all, before);
    std::size_t bytes = 0;
    CHECK_FALSE(is_told_of_packets(all, bytes));
  }
  have_sent(all, 0);
  std::size_t bytes = 0;
  CHECK(is_told_of_packets(all, bytes));
  CHECK(bytes == 4 * sizeof(float));
}

TEST_CASE("packets never carry 0, and those of a slot carry other numbers after each wrap-around") {
  for (std::uint64_t const near : {std::uint64_t{5}, wraps, 2 * wraps, 3 * wraps, 8 * wraps})
    for (std::uint64_t message = near - 5; message != near + 5; ++message) {
      CAPTURE(message);
      std::uint32_t const number = windows::packet_number(message);
      CHECK(number != 0);
      for (std::uint64_t later = windows::depth; later < 8 * wraps; later *= 2)
        CHECK(windows::packet_number(message + later) != number);
    }
}

TEST_CASE("a length alone makes no packets of zeros, or of those of long ago") {
  for (windows::packet_width const width : {windows::packet_width::narrow, windows::packet_width::wide})
    for (std::uint64_t const before : {2 * wraps - 1, 2 * wraps, 3 * wraps - 1})
      for (bool const has_old_ones : {false, true}) {
        CAPTURE(before);
        CAPTURE(has_old_ones);
        group all({.size = 2, .packet_bytes = of_packets * sizeof(float), .width = width});
        windows::view const& mine = all.view(0);
        windows::lane_port const port(mine, 0);
        float const old[4] = {1, 2, 3, 4};
        if (has_old_ones)
          windows::lane_port(all.view(1), 0)
              .send_packets(device::solo_team(), 0, before - wraps, reinterpret_cast<std::byte const*>(old),
                            sizeof old);
        windows::store_head(mine.own + mine.where.packets(1, before), before, sizeof old, 0);
        all.stop();  // so that nothing waits
        std::size_t came = 0;
        CHECK(port.take_packets(device::solo_team(), 1, before, 0, sizeof old, came) == status::aborted);
        CHECK(came == sizeof old);
      }
}

TEST_CASE("calls of all lengths go on where the numbers become longer than 32 bits") {
  for (windows::packet_width const width : {windows::packet_width::narrow, windows::packet_width::wide})
    for (int const threads : {1, 3}) {
      CAPTURE(threads);
      group all({.size = 2, .threads = threads, .packet_bytes = of_packets * sizeof(float), .width = width});
      have_sent(all, wraps - 9);
      for (std::size_t const count :
           {of_packets, of_packets + 1, std::size_t{1}, of_packets - 1, 2 * of_packets, std::size_t{3}})
        for (int again = 0; again < 3; ++again) {
          CAPTURE(count);
          REQUIRE(sums(all, count) == std::vector<float>(count, 3.0f));
        }
    }
}
