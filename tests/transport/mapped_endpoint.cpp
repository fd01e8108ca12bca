// SPDX-License-Identifier: Apache-2.0
// Two endpoints of a mapped transport in one thread: credits, letters that wrap around, small and
// large payloads, lanes that do not disturb each other, and when memory is the sender's again.
// compiled: apart, a warning is off in all of it
#if defined(__GNUC__) && !defined(__clang__)
// Payloads here are objects that g++ knows. Without optimising it also warns of the branches for other sizes.
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif

#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "collx/transport/threads.hpp"

namespace {

using collx::rank_t;
using collx::transport::arrival;
using collx::transport::handover;
using collx::transport::threads_world;
using endpoint = collx::transport::threads::endpoint;
namespace mapped = collx::transport::mapped;

struct two_ends {
  two_ends() : world(*new threads_world(2, {.staging_bytes = 64 * 1024})) {
    for (rank_t r = 0; r < 2; ++r) {
      collx::array<rank_t> members(2);
      members[1] = 1;
      ends.push_back(new endpoint(world, r, std::move(members), world.blocks(), world.layout()));
    }
  }
  two_ends(two_ends const&) = delete;
  ~two_ends() {
    for (endpoint* each : ends) each->leave();
    for (endpoint* each : ends) delete each;
    world.drop();
  }

  threads_world& world;
  std::vector<endpoint*> ends;
};

// Of lane 0.
constexpr mapped::inbox_shape inbox = mapped::inbox_for(0, 2);
constexpr std::size_t enclosed_bytes_max = inbox.enclosed_bytes_max;

std::vector<std::byte> bytes_of(std::uint64_t seed, std::size_t count) {
  collx::replayable_random random(seed);
  std::vector<std::byte> all(count);
  for (std::byte& each : all) each = static_cast<std::byte>(random.next());
  return all;
}

}  // namespace

TEST_CASE("mapped: letters arrive in order, of every size, many times around the inbox") {
  two_ends pair;
  endpoint &from = *pair.ends[0], &to = *pair.ends[1];
  collx::replayable_random random(1);
  std::uint64_t sent = 0, received = 0;
  // What is in flight lies in memory of its own until it is consumed.
  std::vector<std::vector<std::byte>> payloads(4096);
  while (received < payloads.size()) {
    if (random.below(2) == 0 && sent < payloads.size() && from.can_send(0, 1)) {
      payloads[sent] = bytes_of(sent, random.below(600));
      from.send(0, 1, payloads[sent].data(), payloads[sent].size(), handover::in_place);
      ++sent;
    }
    arrival what;
    if (random.below(2) == 0 && to.arrived(0, 0, what)) {
      REQUIRE(received < sent);
      REQUIRE(what.bytes == payloads[received].size());
      // Of small payloads elements are read where they lie, long double among them.
      if (what.bytes <= enclosed_bytes_max)
        REQUIRE(reinterpret_cast<std::uintptr_t>(what.data) % endpoint::inline_bytes == 0);
      if (what.bytes != 0) REQUIRE(std::memcmp(what.data, payloads[received].data(), what.bytes) == 0);
      REQUIRE(to.arrived(0, 0, what));  // repeatable
      to.consume(0, 0);
      ++received;
    } else {
      REQUIRE(sent - received <= inbox.letters);
    }
  }
}

TEST_CASE("mapped: a letter says what its sender has consumed, read or not") {
  std::vector<std::byte> const payload(enclosed_bytes_max, std::byte{0x7f});
  for (std::size_t const bytes : {std::size_t{8}, payload.size()}) {
    std::uint64_t const letters = inbox.letters;
    two_ends pair;
    endpoint &busy = *pair.ends[0], &peer = *pair.ends[1];
    arrival what;
    // The busy one only sends; the peer answers each letter, and never says otherwise that it has read it.
    std::uint64_t unread = 0;
    while (unread < letters) {
      REQUIRE(busy.can_send(0, 1));
      busy.send(0, 1, payload.data(), bytes, handover::staged);
      REQUIRE(peer.arrived(0, 0, what));
      peer.consume(0, 0);
      REQUIRE(peer.can_send(0, 0));
      peer.send(0, 0, payload.data(), bytes, handover::staged);
      ++unread;
    }
    // All of its letters are known to be read, so that a whole inbox is free.
    for (std::uint64_t i = 0; i < letters; ++i) {
      REQUIRE(busy.can_send(0, 1));
      busy.send(0, 1, payload.data(), bytes, handover::staged);
    }
    CHECK_FALSE(busy.can_send(0, 1));
    CHECK_FALSE(peer.can_send(0, 0));
    for (std::uint64_t i = 0; i < unread; ++i) {
      REQUIRE(busy.arrived(0, 1, what));
      busy.consume(0, 1);
    }
    CHECK(peer.can_send(0, 0));
  }
}

TEST_CASE("mapped: credits run out when nobody reads, and come back") {
  two_ends pair;
  endpoint &from = *pair.ends[0], &to = *pair.ends[1];
  for (int round = 0; round < 10; ++round) {
    std::uint64_t sent = 0;
    std::uint64_t const value = static_cast<std::uint64_t>(round);
    for (; from.can_send(0, 1); ++sent)
      from.send(0, 1, reinterpret_cast<std::byte const*>(&value), sizeof value, handover::staged);
    // A schedule may count on this many, whatever came before.
    CHECK(sent >= mapped::depth);
    CHECK(sent <= inbox.letters);
    CHECK_FALSE(from.can_send(0, 1));
    arrival what;
    for (; sent > 0; --sent) {
      REQUIRE(to.arrived(0, 0, what));
      std::uint64_t got;
      std::memcpy(&got, what.data, sizeof got);
      CHECK(got == value);
      to.consume(0, 0);
    }
    CHECK_FALSE(to.arrived(0, 0, what));
    CHECK(from.can_send(0, 1));
  }
}

TEST_CASE("mapped: a sender of what fits letters is far ahead") {
  std::byte const payload[enclosed_bytes_max] = {};
  for (std::size_t const bytes :
       {std::size_t{1}, endpoint::inline_bytes, endpoint::inline_bytes + 1, sizeof payload}) {
    two_ends pair;
    endpoint &from = *pair.ends[0], &to = *pair.ends[1];
    std::uint64_t ahead = 0, least = ~std::uint64_t{0};
    arrival what;
    // Whatever the place in the ring, and whatever was told of what has been read.
    for (std::uint64_t i = 0; i < 3 * inbox.letters; ++i) {
      for (; from.can_send(0, 1); ++ahead) from.send(0, 1, payload, bytes, handover::in_place);
      if (ahead < least) least = ahead;
      REQUIRE(to.arrived(0, 0, what));
      to.consume(0, 0);
      --ahead;
    }
    CHECK(least >= inbox.depth());
    CHECK(least >= 24);
  }
}

TEST_CASE("mapped: a credit that is there stays until it is used") {
  two_ends pair;
  for (int i = 0; i < 100; ++i) REQUIRE(pair.ends[0]->can_send(0, 1));
}

TEST_CASE("mapped: lanes and directions are independent") {
  two_ends pair;
  endpoint &from = *pair.ends[0], &to = *pair.ends[1];
  std::byte const one{1};
  while (from.can_send(0, 1)) from.send(0, 1, &one, 1, handover::staged);
  arrival what;
  for (int lane = 1; lane < endpoint::lane_count; ++lane) {
    CHECK_FALSE(to.arrived(lane, 0, what));
    CHECK(from.can_send(lane, 1));
    auto const number = static_cast<std::byte>(lane);
    from.send(lane, 1, &number, 1, handover::staged);
    REQUIRE(to.arrived(lane, 0, what));
    CHECK(*what.data == number);
  }
  CHECK_FALSE(from.arrived(0, 1, what));
  CHECK(to.can_send(0, 0));
}

TEST_CASE("mapped: payloads of every size that letters hold, whatever lay in their lines before") {
  two_ends pair;
  endpoint &from = *pair.ends[0], &to = *pair.ends[1];
  collx::replayable_random random(2);
  arrival what;
  for (std::size_t round = 0; round < 3 * inbox.letters; ++round)
    for (std::size_t bytes = 0; bytes <= enclosed_bytes_max + 1; ++bytes) {
      std::vector<std::byte> const sent = bytes_of(random.next(), bytes);
      std::vector<std::byte> passing = sent;
      CHECK_FALSE(to.arrived(0, 0, what));
      REQUIRE(from.can_send(0, 1));
      from.send(0, 1, passing.data(), bytes, handover::in_place);
      if (bytes <= enclosed_bytes_max) passing.assign(bytes, std::byte{0});
      REQUIRE(to.arrived(0, 0, what));
      REQUIRE(what.bytes == bytes);
      if (bytes != 0) REQUIRE(std::memcmp(what.data, sent.data(), bytes) == 0);
      to.consume(0, 0);
    }
}

TEST_CASE(
    "mapped: as many letters as an inbox holds keep what is enclosed, and no enclosure lies in another") {
  two_ends pair;
  endpoint &from = *pair.ends[0], &to = *pair.ends[1];
  arrival what;
  std::uint64_t number = 0;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < inbox.letters; ++i) {
      REQUIRE(from.can_send(0, 1));
      from.send(0, 1, bytes_of(number + i, enclosed_bytes_max).data(), enclosed_bytes_max,
                handover::in_place);
    }
    CHECK_FALSE(from.can_send(0, 1));
    for (std::uint64_t i = 0; i < inbox.letters; ++i, ++number) {
      REQUIRE(to.arrived(0, 0, what));
      REQUIRE(std::memcmp(what.data, bytes_of(number, enclosed_bytes_max).data(), enclosed_bytes_max) == 0);
      to.consume(0, 0);
    }
  }
  for (collx::rank_t const size : {1, 2, 4, 8, 16, 32, 64, 4096}) {
    CAPTURE(size);
    mapped::inbox_shape const of_size = mapped::inbox_for(0, size);
    std::size_t const places = of_size.letters;
    REQUIRE(of_size.stride_bytes >= of_size.enclosed_bytes_max);
    REQUIRE(of_size.bytes() == places * (mapped::line_bytes + of_size.stride_bytes));
    std::vector<bool> taken(places);
    for (std::size_t index = 0; index < places; ++index) {
      std::size_t const at = of_size.enclosure(index);
      REQUIRE(at % of_size.stride_bytes == 0);
      REQUIRE(at / of_size.stride_bytes < places);
      REQUIRE_FALSE(taken[at / of_size.stride_bytes]);
      taken[at / of_size.stride_bytes] = true;
      // Never right behind the one before.
      if (index > 0) REQUIRE(at != of_size.enclosure(index - 1) + of_size.stride_bytes);
    }
  }
}

TEST_CASE("mapped: a small payload is copied at once, a large one is read where it lies") {
  for (int const lane : {0, 1}) {
    two_ends pair;
    endpoint &from = *pair.ends[0], &to = *pair.ends[1];
    std::size_t const most = lane == 0 ? enclosed_bytes_max : endpoint::inline_bytes;
    std::vector<std::byte> small = bytes_of(1, most), large = bytes_of(2, most + 1);
    std::vector<std::byte> const small_before = small;
    from.send(lane, 1, small.data(), small.size(), handover::in_place);
    from.send(lane, 1, large.data(), large.size(), handover::in_place);
    small.assign(small.size(), std::byte{0});
    arrival what;
    REQUIRE(to.arrived(lane, 0, what));
    CHECK(std::memcmp(what.data, small_before.data(), what.bytes) == 0);
    to.consume(lane, 0);
    CHECK(from.unread_by(lane) == 1);
    REQUIRE(to.arrived(lane, 0, what));
    CHECK(what.data == large.data());
    CHECK(from.unread_by(lane) == 1);
    to.consume(lane, 0);
    CHECK(from.unread_by(lane) == collx::no_rank);
  }
}

TEST_CASE("mapped: staging is given back once its readers are done with a fragment") {
  two_ends pair;
  endpoint &from = *pair.ends[0], &to = *pair.ends[1];
  std::size_t const half = from.staging_bytes() / 2;
  constexpr int lane = 1;  // with room for two fragments
  for (int fragment = 0; fragment < 20; ++fragment) {
    std::byte* place = from.stage(lane, half);
    arrival what;
    while (place == nullptr) {
      REQUIRE(to.arrived(lane, 0, what));
      to.consume(lane, 0);
      place = from.stage(lane, half);
    }
    std::memset(place, fragment, half);
    REQUIRE(from.can_send(lane, 1));
    from.send(lane, 1, place, half, handover::staged);
    from.end_fragment(lane);
    if (fragment < 1) continue;
    // One fragment behind: what is read was not overwritten by what was staged after it.
    REQUIRE(to.arrived(lane, 0, what));
    CHECK(what.data[0] == static_cast<std::byte>(fragment - 1));
    CHECK(what.data[half - 1] == static_cast<std::byte>(fragment - 1));
    to.consume(lane, 0);
  }
}

TEST_CASE("mapped: a peer's output can be stored to once a payload of this collective has come from it") {
  two_ends pair;
  endpoint &from = *pair.ends[0], &to = *pair.ends[1];
  std::vector<std::byte> output(enclosed_bytes_max + 1), payload(enclosed_bytes_max + 1);
  to.begin(0, nullptr);
  CHECK(to.push_target(0, 0) == nullptr);
  from.begin(0, output.data(), output.size());
  from.send(0, 1, payload.data(), payload.size(), handover::in_place);
  arrival what;
  REQUIRE(to.arrived(0, 0, what));
  CHECK(to.push_target(0, 0) == output.data());
  CHECK(to.push_room(0, 0) == output.size());
  to.consume(0, 0);
  CHECK(to.push_target(0, 0) == output.data());
  to.begin(0, nullptr);  // the next collective knows nothing of it yet
  CHECK(to.push_target(0, 0) == nullptr);
}

TEST_CASE("mapped: the first failure is kept, and ends every wait") {
  two_ends pair;
  CHECK(pair.ends[0]->interrupted(1) == collx::status::ok);
  pair.world.abort(collx::status::timeout, 1, 0);
  pair.world.abort(collx::status::mismatch, 0, collx::no_rank);
  CHECK(pair.ends[0]->interrupted(1) == collx::status::aborted);
  CHECK(pair.world.first_failure().code == collx::status::timeout);
  CHECK(pair.world.first_failure().reporter == 1);
  CHECK(pair.world.first_failure().culprit == 0);
}

// Some ten minutes of small messages one way, which are not sent here: the counts are set.
TEST_CASE("mapped: a letter that lies unread while 2^31 and more go the other way says nothing new") {
  mapped::letter letters[2]{};
  mapped::acknowledgement told{};
  mapped::pair with{};
  with.inbox = mapped::ring_place(reinterpret_cast<std::byte*>(letters), mapped::inbox_shape{2, 64, 0});
  with.returned = &told;
  letters[0].sequence.store(1, std::memory_order_relaxed);
  constexpr std::uint64_t step = std::uint64_t{1} << 29;
  for (std::uint64_t consumed = step; consumed < 40 * step; consumed += step) {
    CAPTURE(consumed);
    with.sent = consumed + 3;
    told.consumed.store(consumed, std::memory_order_relaxed);
    REQUIRE(mapped::look_for_receipt(with) == consumed);
    REQUIRE(mapped::look_for_receipt(with) == consumed);
  }
  // Consumed at last, it says what was known.
  mapped::learn(with, letters[0]);
  CHECK(with.known_consumed == 39 * step);
}
