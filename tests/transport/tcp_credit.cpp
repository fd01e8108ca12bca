// SPDX-License-Identifier: Apache-2.0
// How many messages may be on their way to a rank that has not read them: many small ones, fewer large ones.
// A sender keeps to it, a receiver tells in time, and does not believe that its peers keep to it. Nor that
// slices are what was sent, if their checksums are there to compare.
// component: tcp
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "transport/held_ends.hpp"
#include "transport/wired.hpp"

namespace {

using namespace collx::transport::sockets;
using collx::transport::handover;
constexpr std::uint32_t most = channel::depth, most_large = channel::large_depth;
constexpr std::size_t small_bytes = channel::small_bytes_max, large_bytes = small_bytes + 1;

// Rank 0 of two; this test plays rank 1.
struct scene {
  explicit scene(bool checks = false) {
    settings.common.staging_bytes = 1 << 20;
    settings.checks = checks;
    comm.emplace(collx::transport::tcp::join(0, 2, settings, 2, new held_ends(theirs)));
    look();
    send(1);
    frame const first = hear(1);
    REQUIRE(first.kind == frame_kind::data);
    REQUIRE(first.flags == (frame::ends_message | (checks ? frame::is_checked : 0)));
    id = first.communicator;
    tell_consumed(1);
  }
  ~scene() {
    comm->abort();
    comm.reset();
    for (int const fd : theirs) close(fd);
  }

  auto& end() { return comm->engine().endpoint(); }
  void look() {
    for (int i = 0; i < 100; ++i) end().progress();
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
  frame hear(int connection) {
    std::byte head[frame_bytes];
    frame what;
    REQUIRE(recv(theirs[connection], head, sizeof head, MSG_DONTWAIT) == ssize_t{sizeof head});
    REQUIRE(decode(head, what));
    return what;
  }
  bool hears_nothing(int connection) {
    look();
    std::byte one[1];
    return recv(theirs[connection], one, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
  }
  void tell(int connection, frame what, std::size_t slice_bytes = 0) {
    write(connection, what, slice_bytes);
    look();
  }
  void write(int connection, frame what, std::size_t slice_bytes) {
    what.communicator = id;
    what.from = 1;
    std::vector<std::byte> bytes(frame_bytes + slice_bytes);
    encode(what, bytes.data());
    REQUIRE(::send(theirs[connection], bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t(bytes.size()));
  }
  void tell_consumed(std::uint32_t messages) {
    frame what;
    what.kind = frame_kind::credit;
    what.consumed = messages;
    tell(0, what);
  }
  // The next whole message, of zeros; with a checksum, if it is given.
  void tell_message(std::size_t bytes, std::optional<std::uint32_t> checksum = {}) {
    tell(1, next_message(bytes, checksum), bytes);
  }
  frame next_message(std::size_t bytes, std::optional<std::uint32_t> checksum = {}) {
    frame what;
    what.flags = frame::ends_message;
    if (checksum) what.flags |= frame::is_checked;
    what.checksum = checksum.value_or(0);
    what.sequence = what.message = told++;
    what.message_bytes = what.slice_bytes = static_cast<std::uint32_t>(bytes);
    what.consumed = 1;
    return what;
  }
  bool is_broken() { return end().interrupted(1) != collx::status::ok; }

  int theirs[2];
  collx::transport::tcp_settings settings;
  std::vector<std::byte> payload = std::vector<std::byte>(large_bytes), heard = payload;
  std::uint64_t id = 0;
  std::uint32_t told = 0;
  std::optional<collx::communicator<collx::transport::tcp>> comm;
};

}  // namespace

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
    CHECK(said.checksum == crc32c(s.payload.data(), bytes));
  }
}

TEST_CASE("tcp: a slice that its checksum does not fit is not believed, whether or not this rank sends any") {
  watchdog dog;
  for (bool const checks : {false, true})
    for (std::size_t const bytes : {std::size_t{0}, std::size_t{5}, small_bytes, large_bytes}) {
      CAPTURE(checks);
      CAPTURE(bytes);
      scene s(checks);
      std::uint32_t const right = crc32c(std::vector<std::byte>(bytes).data(), bytes);
      s.tell_message(bytes, right);
      CHECK_FALSE(s.is_broken());
      collx::transport::arrival message;
      CHECK(s.end().arrived(0, 1, message));
      s.tell_message(bytes, right ^ 1);
      CHECK(s.is_broken());
    }
}

TEST_CASE("tcp: what schedules may count on can be on its way, whatever was read before") {
  using collx::transport::tcp;
  watchdog dog;
  collx::transport::tcp_settings chosen;
  chosen.common.staging_bytes = 64 * 1024;
  std::vector<std::byte> const payload(large_bytes);
  for (std::uint32_t before = 0; before <= most_large; ++before) {
    CAPTURE(before);
    wired::cables all(2);
    auto zero = tcp::join<tcp>(0, 2, chosen, 2, all[0]), one = tcp::join<tcp>(1, 2, chosen, 2, all[1]);
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
