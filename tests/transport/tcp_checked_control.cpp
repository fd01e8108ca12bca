// SPDX-License-Identifier: Apache-2.0
// Frames for control have checksums where these are asked for: no bit of one that has flipped is believed.
// component: tcp
#include <doctest/doctest.h>

#include "collx/collx.hpp"
#include "transport/played_peer.hpp"
#include "watchdog.hpp"

namespace {

using namespace collx::transport::sockets;
using collx::status;

constexpr int control = 0, data = 1;

struct scene : played_peer<> {
  explicit scene(bool checks = true) : played_peer(checks) {
    // Messages of which the peer may say that it has read them.
    std::byte const payload[8] = {};
    for (int i = 0; i < 8; ++i)
      end().send(0, 1, payload, sizeof payload, collx::transport::handover::in_place);
    look();
  }

  // What this rank thinks of its peer, which is found out by the second question.
  status outlook() {
    (void)end().interrupted(1);
    return end().interrupted(1);
  }
  // Writes a frame for control with one bit changed, or none (-1).
  void tell_changed(int connection, frame what, int bit) {
    what = mine(what);
    add_checksum(what, nullptr);
    std::vector<std::byte> head(head_bytes);
    encode(what, head.data());
    if (bit >= 0) head[static_cast<std::size_t>(bit) / 8] ^= std::byte{1} << bit % 8;
    write(connection, head);
    look();
  }
};

struct word {
  frame_kind kind;
  int connection;
  status sound;  // what becomes of it where no bit has flipped
};
constexpr word words[] = {
    {frame_kind::credit, control, status::ok},  {frame_kind::alarm, control, status::aborted},
    {frame_kind::goodbye, control, status::ok}, {frame_kind::goodbye, data, status::ok},
    {frame_kind::lost, control, status::ok},    {frame_kind::question, control, status::ok},
    {frame_kind::answer, control, status::ok}};

frame frame_of(word const& which) {
  frame what;
  what.kind = which.kind;
  if (which.kind == frame_kind::credit) what.consumed = 2;
  if (which.kind == frame_kind::alarm) what.message = static_cast<std::uint32_t>(status::mismatch);
  return what;
}

}  // namespace

TEST_CASE("tcp: a frame for control is believed if every bit of it is right, where checksums are asked for") {
  watchdog dog;
  for (word const& each : words) {
    CAPTURE(static_cast<int>(each.kind));
    CAPTURE(each.connection);
    scene sound;
    sound.tell_changed(each.connection, frame_of(each), -1);
    CHECK(sound.outlook() == each.sound);
    for (int bit = 0; bit < 8 * static_cast<int>(frame_bytes); ++bit) {
      CAPTURE(bit);
      scene s;
      s.tell_changed(each.connection, frame_of(each), bit);
      // The connection is broken, and nothing else has come of it.
      REQUIRE(s.outlook() == status::peer_lost);
    }
  }
}

TEST_CASE("tcp: a frame for control without a checksum is not believed where these are asked for") {
  watchdog dog;
  for (word const& each : words)
    for (bool const checks : {false, true}) {
      CAPTURE(static_cast<int>(each.kind));
      CAPTURE(checks);
      scene s(checks);
      std::vector<std::byte> head(s.head_bytes);
      encode(s.mine(frame_of(each)), head.data());
      s.write(each.connection, head);
      s.look();
      CHECK(s.outlook() == (checks ? status::peer_lost : each.sound));
    }
}

TEST_CASE("tcp: a checksum of a frame for control is compared, whether or not this rank sends any") {
  watchdog dog;
  scene s(false);
  s.tell_changed(control, frame_of(words[0]), -1);
  CHECK(s.outlook() == status::ok);
  constexpr int bit_of_consumed = 8 * 36;
  s.tell_changed(control, frame_of(words[0]), bit_of_consumed);
  CHECK(s.outlook() == status::peer_lost);
}

TEST_CASE("tcp: frames for control go with their checksums, if these are asked for") {
  watchdog dog;
  for (bool const checks : {false, true}) {
    CAPTURE(checks);
    scene s(checks);
    std::byte sent[8 * (frame_bytes + 8)];
    REQUIRE(recv(s.theirs[data], sent, sizeof sent, MSG_WAITALL) == ssize_t{sizeof sent});
    auto const hears = [&](int connection, frame_kind kind) {
      frame const said = s.hear(connection);
      CHECK(said.kind == kind);
      CHECK(((said.flags & frame::is_checked) != 0) == checks);
      CHECK((checks ? checksum_of(said, nullptr) : 0) == said.checksum);
    };
    frame question;
    question.kind = frame_kind::question;
    s.tell(control, question);
    hears(control, frame_kind::answer);
    for (std::uint32_t i = 0; i < channel::depth / 2; ++i) {
      frame message;
      message.flags = frame::ends_message;
      message.sequence = message.message = i;
      message = s.mine(message);
      if (checks) add_checksum(message, nullptr);
      s.tell(data, message);
      REQUIRE(s.has_arrived());
      s.end().expect(0, 1, nullptr, 0);
      s.end().consume(0, 1);
    }
    s.look();
    hears(control, frame_kind::credit);
    s.comm->abort();
    hears(control, frame_kind::alarm);
    s.comm.reset();
    hears(control, frame_kind::goodbye);
  }
  // Where nothing has failed, data ends with a word as well.
  scene s;
  std::byte sent[8 * (frame_bytes + 8)];
  REQUIRE(recv(s.theirs[data], sent, sizeof sent, MSG_WAITALL) == ssize_t{sizeof sent});
  s.comm.reset();
  frame const last = s.hear(data);
  CHECK(last.kind == frame_kind::goodbye);
  CHECK(last.checksum == checksum_of(last, nullptr));
}
