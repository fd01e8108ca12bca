// SPDX-License-Identifier: Apache-2.0
// Packets of both widths: payloads of all small lengths and alignments, by teams of several sizes, over slots
// that held longer messages before; and a receiver who finds only the number of another message.
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "collx/transport/windows/layout.hpp"
#include "collx/transport/windows/packets.hpp"
#include "device/host_team.hpp"

namespace {

using namespace collx;
namespace windows = transport::windows;

constexpr std::size_t bytes_max = 300;

// No message comes in any other way.
constexpr auto nothing_else = [](std::size_t&) { return false; };

[[nodiscard]] std::byte content(std::size_t message, std::size_t i) {
  return static_cast<std::byte>(message * 31 + i * 7 + 1);
}

// One message after the other through one slot, sent and taken by teams at the same time.
template <int Words>
void pass_messages(int threads) {
  CAPTURE(Words);
  CAPTURE(threads);
  alignas(16) std::byte slot[2 * bytes_max + 16 + windows::packets_begin] = {};
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
      windows::send_packets<Words>(team, slot, m, 0, from, lengths[m]);
      both.arrive_and_wait();  // taken: the slot may be written again
      both.arrive_and_wait();
    }
  };
  auto const receiver = [&](device_test::host_team& team) {
    for (std::size_t m = 0; m < lengths.size(); ++m) {
      std::size_t came = 0;
      status const outcome =
          windows::take_packets<Words>(team, limits, slot, m, 0, got.data(), lengths[m], nothing_else, came);
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

// A slot that one thread sends to and takes from, which waits for nothing.
template <int Words>
struct lone_slot {
  alignas(16) std::byte slot[64 + windows::packets_begin] = {};
  std::uint32_t stopped = 1, got[8] = {};
  std::byte const payload[20] = {};
  std::size_t came = 0;

  void send(std::uint64_t message, std::size_t bytes, std::uint64_t call = 0) {
    windows::send_packets<Words>(device::solo_team(), slot, message, call, payload, bytes);
  }
  template <class CameOtherwise>
  status take(std::uint64_t message, std::size_t bytes, CameOtherwise const& came_otherwise,
              std::uint64_t call = 0) {
    device::patience limits;
    limits.stopped_by_peer = limits.stopped_by_host = &stopped;
    came = 0;
    return windows::take_packets<Words>(device::solo_team(), limits, slot, message, call, got, bytes,
                                        came_otherwise, came);
  }
  status take(std::uint64_t message, std::size_t bytes) { return take(message, bytes, nothing_else); }
};

template <int Words>
void find_another_message() {
  lone_slot<Words> s;
  s.send(7, 20);
  CHECK(s.take(8, 20) == status::aborted);
  CHECK(s.take(7, 20) == status::ok);
  // All but the last packet are here, and the length is that of all.
  s.send(9, 20 - 4 * windows::packets<Words>::payload_words);
  windows::store_head(s.slot, 9, 20, 0);
  CHECK(s.take(9, 20) == status::aborted);
}

template <int Words>
void find_another_length() {
  lone_slot<Words> s;
  for (std::size_t const sent : {std::size_t{1}, std::size_t{4}, std::size_t{13}, std::size_t{20}})
    for (std::size_t const expected : {std::size_t{1}, std::size_t{2}, std::size_t{12}, std::size_t{20}}) {
      CAPTURE(sent);
      CAPTURE(expected);
      std::uint64_t const message = 100 * sent + expected;
      s.send(message, sent);
      CHECK(s.take(message, expected) == (sent == expected ? status::ok : status::mismatch));
      CHECK(s.came == sent);
    }
  CHECK(s.take(1, 20, [](std::size_t& bytes) { return bytes = 5000, true; }) == status::mismatch);
  CHECK(s.came == 5000);
}

template <int Words>
void find_another_call() {
  constexpr std::uint64_t wraps = windows::call_mask + 1;
  lone_slot<Words> s;
  std::uint64_t message = 0;
  for (std::uint64_t const own : {std::uint64_t{3}, wraps - 1, wraps, 5 * wraps - 1})
    for (std::int64_t const ahead : {-3, -1, 0, 1, 3}) {
      CAPTURE(own);
      CAPTURE(ahead);
      s.send(++message, 20, own + static_cast<std::uint64_t>(ahead));
      CHECK(s.take(message, 20, nothing_else, own) == (ahead == 0 ? status::ok : status::mismatch));
      CHECK(s.came == 20);
      std::int64_t told = 0;
      CHECK(windows::load_call(s.slot, message, own, told));
      CHECK(told == ahead);
      CHECK_FALSE(windows::load_call(s.slot, message + 1, own, told));
    }
}

}  // namespace

TEST_CASE("packets carry payloads of any length and alignment") {
  for (int const threads : {1, 2}) {
    pass_messages<2>(threads);
    pass_messages<4>(threads);
  }
}

TEST_CASE("a packet of another message is not taken") {
  find_another_message<2>();
  find_another_message<4>();
}

TEST_CASE("a message of another length, or that came in another way, is told") {
  find_another_length<2>();
  find_another_length<4>();
}

TEST_CASE("a message of another call is told, though it is as long") {
  find_another_call<2>();
  find_another_call<4>();
}

TEST_CASE("a slot has room for the longest message, beside the others") {
  for (std::size_t const bytes : {std::size_t{1}, std::size_t{256}, std::size_t{4096}, std::size_t{1} << 20})
    for (windows::packet_width const width : {windows::packet_width::narrow, windows::packet_width::wide}) {
      windows::layout const where(3, 2, 4096, bytes, width);
      std::size_t const each = width == windows::packet_width::wide ? 12 : 4;
      std::size_t const needed =
          windows::packets_begin + (where.packet_bytes() + each - 1) / each * static_cast<std::size_t>(width);
      CAPTURE(bytes);
      for (rank_t peer = 0; peer < 3; ++peer)
        for (std::uint64_t message = 0; message < windows::depth; ++message) {
          bool const is_last = message + 1 == windows::depth;
          std::size_t const next = !is_last   ? where.packets(peer, message + 1)
                                   : peer < 2 ? where.packets(peer + 1, 0)
                                              : where.landing(0);
          CHECK(where.packets(peer, message) + needed <= next);
          CHECK(where.packets(peer, message) % 16 == 0);
        }
    }
  CHECK(windows::layout(3, 2, 4096, 0).packets(2, 7) == windows::layout(3, 2, 4096, 0).landing(0));
}
