// SPDX-License-Identifier: Apache-2.0
// Packets of both widths: payloads of all small lengths and alignments, by teams of several sizes, over slots
// that held longer messages before; and a receiver who finds only the number of another message.
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/transport/windows/packets.hpp"
#include "device/host_team.hpp"

namespace {

using namespace collx;
namespace windows = transport::windows;

constexpr std::size_t bytes_max = 300;

[[nodiscard]] std::byte content(std::size_t message, std::size_t i) {
  return static_cast<std::byte>(message * 31 + i * 7 + 1);
}

// One message after the other through one slot, sent and taken by teams at the same time.
template <int Words>
void pass_messages(int threads) {
  CAPTURE(Words);
  CAPTURE(threads);
  alignas(16) std::byte slot[2 * bytes_max + 16] = {};
  std::vector<std::size_t> lengths;
  for (std::size_t n = 1; n <= 50; ++n) lengths.push_back(n % 7 == 0 ? bytes_max - n : n);
  device::patience limits;
  std::uint32_t never = 0;
  limits.stopped_by_peer = limits.stopped_by_host = &never;
  std::size_t wrong = 0;
  std::barrier<> both(2 * threads);
  std::vector<std::uint32_t> got(bytes_max / 4 + 1);
  auto const sender = [&](device_test::host_team& team) {
    std::vector<std::byte> payload(bytes_max + 8);
    for (std::size_t m = 0; m < lengths.size(); ++m) {
      std::byte* const from = payload.data() + m % 5;
      for (std::size_t i = 0; i < lengths[m]; ++i) from[i] = content(m, i);
      windows::send_packets<Words>(team, slot, static_cast<std::uint32_t>(m + 1), from, lengths[m]);
      both.arrive_and_wait();  // taken: the slot may be written again
      both.arrive_and_wait();
    }
  };
  auto const receiver = [&](device_test::host_team& team) {
    for (std::size_t m = 0; m < lengths.size(); ++m) {
      status const outcome = windows::take_packets<Words>(
          team, limits, slot, static_cast<std::uint32_t>(m + 1), got.data(), lengths[m]);
      both.arrive_and_wait();
      if (team.rank() == 0) {
        wrong += outcome != status::ok;
        for (std::size_t i = 0; i < lengths[m]; ++i)
          wrong += reinterpret_cast<std::byte const*>(got.data())[i] != content(m, i);
      }
      both.arrive_and_wait();
    }
  };
  std::jthread const other([&] { device_test::run_team(threads, sender); });
  device_test::run_team(threads, receiver);
  CHECK(wrong == 0);
}

template <int Words>
void find_another_number() {
  alignas(16) std::byte slot[64] = {};
  std::uint32_t stopped = 1, got[8] = {};
  device::patience limits;
  limits.stopped_by_peer = limits.stopped_by_host = &stopped;
  device::solo_team alone;
  std::byte const payload[20] = {};
  windows::send_packets<Words>(alone, slot, 7, payload, sizeof payload);
  CHECK(windows::take_packets<Words>(alone, limits, slot, 8, got, sizeof payload) == status::aborted);
  CHECK(windows::take_packets<Words>(alone, limits, slot, 7, got, sizeof payload) == status::ok);
  // All but the last packet are here.
  std::size_t const few = sizeof payload - 4 * windows::packets<Words>::payload_words;
  windows::send_packets<Words>(alone, slot, 9, payload, few);
  CHECK(windows::take_packets<Words>(alone, limits, slot, 9, got, sizeof payload) == status::aborted);
}

}  // namespace

TEST_CASE("packets carry payloads of any length and alignment") {
  for (int const threads : {1, 2}) {
    pass_messages<2>(threads);
    pass_messages<4>(threads);
  }
}

TEST_CASE("a packet of another message is not taken") {
  find_another_number<2>();
  find_another_number<4>();
}
