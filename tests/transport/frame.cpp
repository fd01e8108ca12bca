// SPDX-License-Identifier: Apache-2.0
// Heads of frames: what is written is what is read, whatever the values; and bytes from anywhere are either a
// sound head or none.
#include "collx/transport/sockets/frame.hpp"

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "collx/transport/sockets/checksum.hpp"

using namespace collx::transport::sockets;

namespace {

frame random_frame(collx::replayable_random& random) {
  frame f;
  f.kind = static_cast<frame_kind>(1 + random.below(7));
  f.lane = static_cast<std::uint8_t>(random.below(256));
  f.sequence = random.below(1u << 24);
  f.communicator = std::uint64_t{random.below(0xffffffff)} << 32 | random.below(0xffffffff);
  f.from = random.below(0xffffffff);
  f.message = random.below(0xffffffff);
  f.message_bytes = random.below(0xffffffff);
  f.consumed = random.below(0xffffffff);
  f.checksum = random.below(0xffffffff);
  f.offset = random.below(0xffffffff);
  if (f.kind != frame_kind::data) return f;
  f.flags = static_cast<std::uint8_t>(random.below(4));
  f.offset = random.below(f.message_bytes + 1);
  f.slice_bytes = random.below(f.message_bytes - f.offset + 1);
  return f;
}

bool same(frame const& a, frame const& b) {
  return a.kind == b.kind && a.lane == b.lane && a.flags == b.flags && a.sequence == b.sequence &&
         a.communicator == b.communicator && a.from == b.from && a.message == b.message &&
         a.message_bytes == b.message_bytes && a.offset == b.offset && a.slice_bytes == b.slice_bytes &&
         a.consumed == b.consumed && a.checksum == b.checksum;
}

}  // namespace

TEST_CASE("what is encoded is what is decoded") {
  collx::replayable_random random(1);
  for (int i = 0; i < 10'000; ++i) {
    frame const f = random_frame(random);
    std::byte head[frame_bytes];
    encode(f, head);
    frame back;
    REQUIRE(decode(head, back));
    REQUIRE(same(f, back));
  }
}

TEST_CASE("a slice that leaves its message, unknown flags, kinds and padding are no frames") {
  frame f;
  f.message_bytes = 100;
  f.offset = 60;
  f.slice_bytes = 40;
  std::byte head[frame_bytes];
  encode(f, head);
  CHECK(decode(head, f));
  auto const refused = [&](auto const& change) {
    frame broken = f;
    change(broken);
    std::byte bytes[frame_bytes];
    encode(broken, bytes);
    frame out;
    return !decode(bytes, out);
  };
  CHECK(refused([](frame& b) { b.slice_bytes = 41; }));
  CHECK(refused([](frame& b) { b.offset = 0xffffffff; }));
  CHECK(refused([](frame& b) { b.flags = 4; }));
  CHECK(refused([](frame& b) { b.kind = static_cast<frame_kind>(0); }));
  CHECK(refused([](frame& b) { b.kind = static_cast<frame_kind>(8); }));
  CHECK(refused([](frame& b) { b.kind = frame_kind::credit; }));  // with a slice
  head[frame_bytes - 1] = std::byte{1};
  CHECK_FALSE(decode(head, f));
}

TEST_CASE("no bytes from anywhere make a slice that leaves its message") {
  collx::replayable_random random(2);
  frame sound = random_frame(random);
  while (sound.kind != frame_kind::data) sound = random_frame(random);
  int accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::byte head[frame_bytes];
    encode(sound, head);
    for (std::uint32_t changes = 1 + random.below(6); changes > 0; --changes)
      head[random.below(frame_bytes)] = static_cast<std::byte>(random.below(256));
    frame out;
    if (!decode(head, out)) continue;
    ++accepted;
    if (out.kind != frame_kind::data) REQUIRE(out.slice_bytes == 0);
    else REQUIRE(std::uint64_t{out.offset} + out.slice_bytes <= out.message_bytes);
  }
  CHECK(accepted > 0);
}

TEST_CASE("the checksum is CRC-32C, with and without the processor's instruction") {
  // RFC 3720, B.4.
  std::byte bytes[32] = {};
  CHECK(crc32c(bytes, 32) == 0x8a9136aa);
  for (std::byte& b : bytes) b = std::byte{0xff};
  CHECK(crc32c(bytes, 32) == 0x62a8ab43);
  for (unsigned i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
  CHECK(crc32c(bytes, 32) == 0x46dd794e);
  CHECK(~detail::crc32c_anywhere(0xffffffffu, bytes, 32) == 0x46dd794e);
  for (std::size_t length = 0; length <= 32; ++length)
    CHECK(crc32c(bytes, length) == ~detail::crc32c_anywhere(0xffffffffu, bytes, length));
}
