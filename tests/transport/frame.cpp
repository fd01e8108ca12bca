// SPDX-License-Identifier: Apache-2.0
// Heads of frames: what is written is what is read, whatever the values; and bytes from anywhere are either a
// sound head or none.
#include "collx/transport/sockets/frame.hpp"

#include <deque>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/tcp.h>

#include "collx/core/clock.hpp"
#include "collx/core/random.hpp"
#include "collx/transport/sockets/checksum.hpp"
#include "collx/transport/sockets/flow.hpp"

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

// Both ends of a TCP connection that holds little: most writes are cut off somewhere.
struct narrow_connection {
  collx::net::owned_fd near, far;

  narrow_connection() {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const address = reinterpret_cast<sockaddr*>(&here);
    socklen_t size = sizeof here;
    collx::net::owned_fd const door(narrow_socket());
    REQUIRE(bind(door.get(), address, size) == 0);
    REQUIRE(listen(door.get(), 1) == 0);
    REQUIRE(getsockname(door.get(), address, &size) == 0);
    near = collx::net::owned_fd(narrow_socket());
    REQUIRE(connect(near.get(), address, size) == 0);
    far = collx::net::owned_fd(accept(door.get(), nullptr, nullptr));
    REQUIRE(far.get() >= 0);
  }

  static int narrow_socket() {
    int const fd = socket(AF_INET, SOCK_STREAM, 0), few = 1;
    REQUIRE(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &few, sizeof few);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof few);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &few, sizeof few);
    return fd;
  }
};

// Takes slices, each of which counts up from its message's number.
struct counting_sink {
  std::vector<std::byte> memory = std::vector<std::byte>(4096);
  std::uint32_t whole = 0;

  flow::answer begin(frame const& what, std::byte*& to) noexcept {
    to = memory.data();
    return what.message == whole ? flow::answer::take : flow::answer::refuse;
  }
  bool end(frame const& what, std::byte const* slice) noexcept {
    for (std::uint32_t i = 0; i < what.slice_bytes; ++i)
      if (slice[i] != static_cast<std::byte>((what.message + i) & 0xff)) return false;
    ++whole;
    return true;
  }
};

}  // namespace

TEST_CASE("frames arrive whole and in order however their writes are cut off") {
  narrow_connection ends;
  flow out, in;
  out.open(std::move(ends.near), {});
  in.open(std::move(ends.far), {});
  collx::replayable_random random(7);
  std::deque<std::vector<std::byte>> payloads;  // of frames that are not written yet
  counting_sink sink;
  std::uint32_t pushed = 0;
  constexpr std::uint32_t frames = 1500;
  std::uint64_t const deadline_us = collx::now_us() + 60'000'000;
  while (sink.whole != frames) {
    REQUIRE(collx::now_us() < deadline_us);
    // At times one alone, at times several: they are written in different ways.
    std::uint32_t more = out.idle() ? 1 + random.below(2) : random.below(16) == 0 ? 1 : 0;
    for (; more != 0 && pushed != frames && out.has_room(); --more) {
      std::vector<std::byte>& payload = payloads.emplace_back(random.below(3000));
      for (std::size_t i = 0; i < payload.size(); ++i)
        payload[i] = static_cast<std::byte>((pushed + i) & 0xff);
      frame what;
      what.message = pushed++;
      what.message_bytes = what.slice_bytes = static_cast<std::uint32_t>(payload.size());
      outgoing_frame& next = out.push();
      next = {};
      encode(what, next.head);
      next.payload = payload.data();
      next.payload_bytes = what.slice_bytes;
    }
    out.write([&](outgoing_frame const& done) {
      CHECK(done.payload == payloads.front().data());
      payloads.pop_front();
    });
    if (random.below(2) != 0) in.read(sink);
    REQUIRE(out.state() == flow_state::open);
    REQUIRE(in.state() == flow_state::open);
  }
  CHECK(out.idle());
}

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

TEST_CASE("a head has the same bytes on every machine") {
  frame f;
  f.kind = frame_kind::data;
  f.lane = 0x03;
  f.flags = frame::ends_message;
  f.sequence = 0x060504;
  f.communicator = 0x0e0d0c0b0a090807;
  f.from = 0x1211100f;
  f.message = 0x16151413;
  f.message_bytes = 0x7a191817;
  f.offset = 0x1e1d1c1b;
  f.slice_bytes = 0x2221201f;
  f.consumed = 0x26252423;
  f.checksum = 0x2a292827;
  std::byte head[frame_bytes];
  encode(f, head);
  unsigned char const begin[] = {0x63, 0x78, 1, 3, 1};
  for (std::size_t i = 0; i < sizeof begin; ++i) CHECK(std::to_integer<unsigned>(head[i]) == begin[i]);
  // The rest counts up, but for the highest byte of a length.
  for (std::size_t i = sizeof begin; i < 44; ++i)
    CHECK(std::to_integer<std::size_t>(head[i]) == (i == 27 ? 0x7a : i - 1));
  for (std::size_t i = 44; i < frame_bytes; ++i) CHECK(head[i] == std::byte{0});
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
  CHECK(refused([](frame& b) {
    b.kind = frame_kind::credit;
    b.slice_bytes = 0;
    b.flags = frame::ends_message;
  }));
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

TEST_CASE("a checksum goes on where another ended") {
  std::byte bytes[32] = {};
  for (unsigned i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
  for (std::size_t cut = 0; cut <= 32; ++cut)
    CHECK(crc32c(bytes + cut, 32 - cut, crc32c(bytes, cut)) == 0x46dd794e);
}

TEST_CASE("a slice's checksum tells every bit of it and of its head, but for those of the checksum itself") {
  collx::replayable_random random(3);
  frame f = random_frame(random);
  while (f.kind != frame_kind::data) f = random_frame(random);
  f.message_bytes = 1000, f.offset = 960, f.slice_bytes = 40,
  f.flags = frame::ends_message | frame::is_checked;
  std::byte slice[64] = {};
  std::uint32_t const right = checksum_of(f, slice);
  constexpr std::size_t checksum_at = 40, checksum_end = 44;
  int told = 0;
  for (std::size_t bit = 0; bit < 8 * frame_bytes; ++bit) {
    CAPTURE(bit);
    std::byte head[frame_bytes];
    encode(f, head);
    head[bit / 8] ^= std::byte{1} << bit % 8;
    frame other;
    if (!decode(head, other) || other.slice_bytes > sizeof slice) continue;
    ++told;
    bool const is_of_checksum = bit / 8 >= checksum_at && bit / 8 < checksum_end;
    CHECK((checksum_of(other, slice) == right) == is_of_checksum);
  }
  CHECK(told > 200);
  for (std::size_t bit = 0; bit < 8 * f.slice_bytes; ++bit) {
    slice[bit / 8] ^= std::byte{1} << bit % 8;
    CHECK(checksum_of(f, slice) != right);
    slice[bit / 8] ^= std::byte{1} << bit % 8;
  }
}
