// SPDX-License-Identifier: Apache-2.0
// How many messages may be on their way to a rank that has not read them: many small ones, fewer large ones.
// A sender keeps to it, a receiver tells in time, and does not believe that its peers keep to it. Nor that
// slices are what was sent, if their checksums are there to compare.
// component: tcp
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "transport/played_peer.hpp"
#include "transport/wired.hpp"

namespace {

using namespace collx::transport::sockets;
using collx::transport::handover;
constexpr std::uint32_t most = channel::depth, most_large = channel::large_depth;
// With the staging memory of played_peer, half of which is the longest message.
constexpr std::size_t longest_bytes = std::size_t{1} << 19;
constexpr std::size_t small_bytes = collx::transport::tcp_settings::small_bytes_max(longest_bytes);
constexpr std::size_t large_bytes = small_bytes + 1;

struct scene : played_peer<> {
  explicit scene(bool checks = false) : played_peer(checks) {
    send(1);
    frame const first = hear(1);
    REQUIRE(first.kind == frame_kind::data);
    REQUIRE(first.communicator == 1);
    REQUIRE(first.flags == (frame::ends_message | (checks ? frame::is_checked : 0)));
    tell_consumed(1);
  }

  void send(std::size_t bytes) { end().send(0, 1, payload.data(), bytes, handover::in_place); }
  // How many messages of that size it sends before it waits; at most 1000.
  std::uint32_t send_while_it_can(std::size_t bytes) {
    for (std::uint32_t sent = 0; sent < 1000; ++sent) {
      if (!end().can_send(0, 1)) return sent;
      send(bytes);
      drain();
    }
    return 1000;
  }

  // The other side.
  void drain() {
    look();
    while (recv(theirs[1], heard.data(), heard.size(), MSG_DONTWAIT) > 0) look();
  }
  void tell_consumed(std::uint32_t messages) {
    frame what;
    what.kind = frame_kind::credit;
    what.consumed = messages;
    tell(0, what);
  }
  // The next whole message, of zeros; `change`s to its checksum, if it has one.
  void tell_message(std::size_t bytes, std::optional<std::uint32_t> change = {}) {
    tell(1, next_message(bytes, change), bytes);
  }
  frame next_message(std::size_t bytes, std::optional<std::uint32_t> change = {}) {
    frame what;
    what.flags = frame::ends_message;
    what.sequence = what.message = told++;
    what.message_bytes = what.slice_bytes = static_cast<std::uint32_t>(bytes);
    what.consumed = 1;
    if (change) {
      what.flags |= frame::is_checked;
      what.checksum = checksum_of(mine(what), std::vector<std::byte>(bytes).data()) ^ *change;
    }
    return what;
  }

  std::vector<std::byte> payload = std::vector<std::byte>(large_bytes), heard = payload;
  std::uint32_t told = 0;
};

}  // namespace

TEST_CASE("tcp: what a slice says of messages that were read is believed when its checksum is right") {
  watchdog dog;
  for (bool const is_wrong : {false, true}) {
    CAPTURE(is_wrong);
    scene s(true);
    REQUIRE(s.send_while_it_can(8) == most);
    std::vector<std::byte> const slice(8);
    frame what = s.next_message(slice.size());
    what.flags |= frame::is_checked;
    what.consumed = 3;
    what.checksum = checksum_of(s.mine(what), slice.data());
    if (is_wrong) what.consumed ^= 1;  // a number that may be
    s.tell(1, what);
    CHECK_FALSE(s.end().can_send(0, 1));  // the slice is not here yet
    s.write(1, slice);
    s.look();
    CHECK(s.end().can_send(0, 1) == !is_wrong);
    CHECK(s.is_broken() == is_wrong);
  }
}

TEST_CASE("tcp: a sender waits after so many small messages, or so many large ones") {
  watchdog dog;
  scene s;
  s.drain();
  CHECK(s.send_while_it_can(small_bytes) == most);
  s.tell_consumed(1 + 3);
  CHECK(s.send_while_it_can(small_bytes) == 3);
  s.tell_consumed(1 + most + 3);
  CHECK(s.send_while_it_can(large_bytes) == most_large);
  s.tell_consumed(1 + most + 3 + 2);
  CHECK(s.send_while_it_can(large_bytes) == 2);
  // All large ones but one have been read: whatever their size, so many again.
  s.tell_consumed(1 + most + 3 + most_large + 1);
  CHECK(s.send_while_it_can(large_bytes) == most_large - 1);
  s.tell_consumed(1 + most + 3 + 2 * most_large + 1);
  CHECK(s.send_while_it_can(small_bytes) == most);
}

TEST_CASE("tcp: a receiver tells after half of a credit, be it of small messages or of large ones") {
  watchdog dog;
  for (std::size_t const bytes : {small_bytes, large_bytes}) {
    CAPTURE(bytes);
    scene s;
    std::uint32_t const credit = bytes == small_bytes ? most : most_large;
    collx::transport::arrival message;
    for (int round = 0; round < 3; ++round) {
      for (std::uint32_t i = 0; i < credit; ++i) s.tell_message(bytes);
      CHECK_FALSE(s.is_broken());
      for (std::uint32_t i = 1; i <= credit; ++i) {
        CHECK(s.hears_nothing(0));
        REQUIRE(s.end().arrived(0, 1, message));
        CHECK(message.bytes == bytes);
        s.end().consume(0, 1);
        if (i % (credit / 2) != 0) continue;
        frame const receipt = s.hear(0);
        CHECK(receipt.kind == frame_kind::credit);
        CHECK(receipt.consumed == static_cast<std::uint32_t>(round) * credit + i);
      }
    }
  }
}

TEST_CASE("tcp: a large message lies where it is wanted, though it came before that was said") {
  watchdog dog;
  scene s;
  constexpr std::size_t bytes = 80 * 1024;
  std::vector<std::byte> wanted(2 * bytes);
  for (int i = 0; i < 2; ++i) s.write(1, s.next_message(bytes), bytes);
  for (std::byte* const to : {wanted.data(), wanted.data() + bytes}) {
    collx::transport::arrival message;
    s.end().expect(0, 1, to, bytes);
    while (!s.end().arrived(0, 1, message)) s.end().progress();
    CHECK(message.data == to);
    s.end().consume(0, 1);
  }
}

TEST_CASE("tcp: who sends more than there is credit for is not believed") {
  watchdog dog;
  for (std::size_t const bytes : {small_bytes, large_bytes}) {
    CAPTURE(bytes);
    scene s;
    std::uint32_t const credit = bytes == small_bytes ? most : most_large;
    for (std::uint32_t i = 0; i < credit; ++i) s.tell_message(bytes);
    CHECK_FALSE(s.is_broken());
    s.tell_message(bytes);
    CHECK(s.is_broken());
  }
}

TEST_CASE("tcp: slices go with their checksums, if these are asked for") {
  watchdog dog;
  scene s(true);
  // Short ones are sent from a place of their own.
  for (std::size_t const bytes : {std::size_t{5}, std::size_t{0}, small_bytes}) {
    CAPTURE(bytes);
    s.drain();
    for (std::size_t i = 0; i < bytes; ++i) s.payload[i] = static_cast<std::byte>(i * 7 + bytes);
    s.send(bytes);
    s.look();
    frame const said = s.hear(1);
    CHECK(said.slice_bytes == bytes);
    CHECK(said.flags == (frame::ends_message | frame::is_checked));
    CHECK(said.checksum == checksum_of(said, s.payload.data()));
  }
}

TEST_CASE("tcp: a slice that its checksum does not fit is not believed, whether or not this rank sends any") {
  watchdog dog;
  for (bool const checks : {false, true})
    for (std::size_t const bytes : {std::size_t{0}, std::size_t{5}, small_bytes, large_bytes}) {
      CAPTURE(checks);
      CAPTURE(bytes);
      scene s(checks);
      s.tell_message(bytes, 0);
      CHECK_FALSE(s.is_broken());
      CHECK(s.has_arrived());
      s.tell_message(bytes, 1);
      CHECK(s.is_broken());
    }
}

TEST_CASE("tcp: a slice without a checksum is not believed where these are asked for") {
  watchdog dog;
  for (bool const checks : {false, true})
    for (std::size_t const bytes : {std::size_t{0}, small_bytes}) {
      CAPTURE(checks);
      CAPTURE(bytes);
      scene s(checks);
      s.tell_message(bytes);
      CHECK(s.is_broken() == checks);
    }
}

TEST_CASE("tcp: a sound slice whose head says another place, or that it is not checked, is not believed") {
  watchdog dog;
  constexpr std::uint32_t half = 512;
  auto const with_first_as = [&](auto const& change) {
    scene s(true);
    std::vector<std::byte> const slice(half);
    frame first = s.next_message(2 * half);
    first.flags = frame::is_checked;
    first.slice_bytes = half;
    frame second = first;
    second.flags |= frame::ends_message;
    second.sequence = 1;
    second.offset = half;
    first.checksum = checksum_of(s.mine(first), slice.data());
    second.checksum = checksum_of(s.mine(second), slice.data());
    change(first);
    s.tell(1, first, half);
    s.tell(1, second, half);
    CHECK(s.has_arrived() == !s.is_broken());
    return !s.is_broken();
  };
  CHECK(with_first_as([](frame&) {}));
  CHECK_FALSE(with_first_as([](frame& what) { what.offset ^= 64; }));
  CHECK_FALSE(with_first_as([](frame& what) { what.flags = 0; }));
  CHECK_FALSE(with_first_as([](frame& what) { what.consumed ^= 1; }));
}

TEST_CASE("tcp: what schedules may count on can be on its way, whatever was read before") {
  using collx::transport::tcp;
  watchdog dog;
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = 2 * longest_bytes;
  std::vector<std::byte> const payload(large_bytes);
  for (std::uint32_t before = 0; before <= most_large; ++before) {
    CAPTURE(before);
    wired::cables all(2);
    auto zero = tcp::join<tcp>(0, 2, chosen, all[0]), one = tcp::join<tcp>(1, 2, chosen, all[1]);
    auto &from = zero.engine().endpoint(), &to = one.engine().endpoint();
    auto const look = [&] {
      for (int i = 0; i < 10; ++i) from.progress(), to.progress();
    };
    auto const send = [&] {
      REQUIRE(from.can_send(0, 1));
      from.send(0, 1, payload.data(), payload.size(), handover::in_place);
      look();
    };
    auto const read = [&] {
      collx::transport::arrival message;
      to.expect(0, 0, nullptr, payload.size());
      REQUIRE(to.arrived(0, 0, message));
      to.consume(0, 0);
      look();
    };
    for (std::uint32_t i = 0; i < before; ++i) send(), read();
    for (std::uint64_t i = 0; i < from.depth(); ++i) send();
    for (std::uint64_t i = 0; i < from.depth(); ++i) read();
  }
}
