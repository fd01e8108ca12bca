// SPDX-License-Identifier: Apache-2.0
// A message has come when as many bytes of it have as it is long, whatever a peer says: nothing is stored in
// memory that whoever waited for it may have freed, and nothing is read that is not there.
// component: tcp
#include <memory>

#include "collx/collx.hpp"
#include "transport/played_peer.hpp"
#include "watchdog.hpp"

namespace {

using collx::transport::arrival;
using collx::transport::sockets::channel;
using collx::transport::sockets::frame;

constexpr std::uint32_t bytes = 1000, half = bytes / 2;

// A slice of a message of that many bytes; if it reaches the end, it says so.
frame slice_of(std::uint32_t message, std::uint32_t sequence, std::uint32_t offset, std::uint32_t slice_bytes,
               std::uint32_t message_bytes = bytes) {
  frame what;
  what.message = message;
  what.sequence = sequence;
  what.message_bytes = message_bytes;
  what.offset = offset;
  what.slice_bytes = slice_bytes;
  if (offset + slice_bytes == message_bytes) what.flags = frame::ends_message;
  return what;
}

template <int flows>
struct scene : played_peer<flows> {
  // A slice, whole.
  void slice(int connection, frame const& what) { this->tell(connection, what, what.slice_bytes); }
  // Its head only.
  void begin(int connection, frame const& what) { this->tell(connection, what); }

  // The next message is there, of so many bytes, and is read.
  void consume(std::uint32_t wanted = bytes) {
    arrival message;
    this->end().expect(0, 1, nullptr, wanted);
    REQUIRE(this->end().arrived(0, 1, message));
    CHECK(message.bytes == wanted);
    this->end().consume(0, 1);
  }
  // There is no message more than there was, and none will come.
  void check_is_refused() {
    CHECK_FALSE(this->has_arrived());
    CHECK(this->is_broken());
  }
};

// That a peer that says so is not believed.
template <int flows, class Say>
void check_refused(Say const& say) {
  scene<flows> s;
  say(s);
  s.check_is_refused();
}

frame with_flags(frame what, std::uint8_t flags) {
  what.flags = flags;
  return what;
}

}  // namespace

TEST_CASE("tcp: messages come whole, however they are cut, and empty ones, too") {
  watchdog dog;
  scene<1> s;
  s.slice(1, slice_of(0, 0, 0, 0, 0));
  s.consume(0);
  s.slice(1, slice_of(1, 1, 0, bytes));
  s.consume();
  s.slice(1, slice_of(2, 2, 0, half));
  s.slice(1, slice_of(2, 3, half, half - 1));
  CHECK_FALSE(s.has_arrived());
  s.slice(1, slice_of(2, 4, bytes - 1, 1));
  s.slice(1, slice_of(3, 5, 0, 0, 0));
  s.consume();
  s.consume(0);
  CHECK_FALSE(s.has_arrived());
  CHECK_FALSE(s.is_broken());
}

TEST_CASE("tcp: messages come whole, and in order, over two connections of which one is slow") {
  watchdog dog;
  scene<2> s;
  s.begin(1, slice_of(0, 0, 0, half));
  s.slice(2, slice_of(0, 1, half, half));
  s.slice(2, slice_of(1, 2, 0, bytes));
  s.slice(2, slice_of(2, 3, 0, 0, 0));
  CHECK_FALSE(s.has_arrived());
  s.write(1, std::vector<std::byte>(half));
  s.look();
  s.consume();
  s.consume();
  s.consume(0);
  CHECK_FALSE(s.is_broken());
}

TEST_CASE("tcp: a slice that says it is a message's last one reaches its end, and no other does") {
  watchdog dog;
  check_refused<1>([](auto& s) { s.slice(1, with_flags(slice_of(0, 0, 0, 0), frame::ends_message)); });
  check_refused<1>([](auto& s) { s.slice(1, with_flags(slice_of(0, 0, 0, half), frame::ends_message)); });
  check_refused<1>([](auto& s) { s.slice(1, with_flags(slice_of(0, 0, 0, bytes), 0)); });
  check_refused<1>([](auto& s) { s.slice(1, with_flags(slice_of(0, 0, 0, 0, 0), 0)); });
}

TEST_CASE("tcp: the last slice of a message is not all of it") {
  watchdog dog;
  check_refused<1>([](auto& s) { s.slice(1, slice_of(0, 0, half, half)); });
  check_refused<1>([](auto& s) { s.slice(1, slice_of(0, 0, bytes, 0)); });
  // Nor is that of another message.
  check_refused<1>([](auto& s) {
    s.slice(1, slice_of(0, 1, 0, half));
    s.slice(1, slice_of(1, 0, 0, bytes));
  });
}

TEST_CASE("tcp: a message is not there while a slice of it is still coming") {
  watchdog dog;
  auto const then = [](frame const& next) {
    return [next](auto& s) {
      auto const wanted = std::make_unique<std::byte[]>(bytes);
      s.end().expect(0, 1, wanted.get(), bytes);
      s.begin(1, slice_of(0, 1, 0, bytes));
      s.slice(2, next);
      s.check_is_refused();
      // What any rank does whose peer is lost, before its caller frees the memory.
      s.comm->abort();
    };
  };
  // The end alone, with the number that is next.
  check_refused<2>(then(slice_of(0, 0, bytes, 0)));
  // And all bytes once more.
  check_refused<2>(then(slice_of(0, 0, 0, bytes)));
  check_refused<2>(then(slice_of(0, 0, half, half)));
}

TEST_CASE("tcp: slices of a message are no longer together than it is") {
  watchdog dog;
  check_refused<1>([](auto& s) {
    s.slice(1, slice_of(0, 0, 0, half));
    s.slice(1, slice_of(0, 1, half - 1, half + 1));
  });
  check_refused<1>([](auto& s) {
    s.slice(1, slice_of(0, 0, 0, half));
    s.slice(1, slice_of(0, 1, 0, half));
    s.slice(1, slice_of(0, 2, half, half));
  });
}

TEST_CASE("tcp: a message ends once") {
  watchdog dog;
  for (std::uint32_t const length : {bytes, 0u}) {
    CAPTURE(length);
    scene<1> s;
    s.slice(1, slice_of(0, 0, 0, length, length));
    s.slice(1, slice_of(0, 1, length, 0, length));
    CHECK(s.is_broken());
    s.consume(length);
    s.check_is_refused();
  }
  // Nor does an end count for the message whose place is the same.
  scene<1> s;
  for (std::uint32_t m = 0; m < channel::depth; ++m) s.slice(1, slice_of(m, m, 0, 1, 1));
  CHECK_FALSE(s.is_broken());
  s.slice(1, slice_of(0, channel::depth, 1, 0, 1));
  CHECK(s.is_broken());
  for (std::uint32_t m = 0; m < channel::depth; ++m) s.consume(1);
  s.check_is_refused();
}
