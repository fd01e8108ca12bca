// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other while they meet: what is written is read, and nothing else is.
#include "collx/bootstrap/messages.hpp"

#include <array>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"

namespace {

using namespace collx::bootstrap;
using collx::net::address;

registration const mine{{address::loopback(80), 0x0123456789abcdef, 0x1122334455667788, {2, 0x89abcdef}},
                        address::loopback(81, 6)};

template <class Message>
std::array<std::byte, Message::bytes_count> written(Message const& what) {
  std::array<std::byte, Message::bytes_count> text;
  what.encode(text.data());
  return text;
}

// What random bytes decode to, if anything, encodes to the same bytes.
template <class Message>
void check_random(std::uint64_t seed) {
  collx::replayable_random random(seed);
  for (int i = 0; i < 20000; ++i) {
    // Small bytes, so that some of it decodes.
    std::array<std::byte, Message::bytes_count> text;
    for (std::byte& each : text) each = static_cast<std::byte>(random.below(8) == 0 ? random.below(7) : 0);
    Message found;
    if (Message::decode(text.data(), found)) REQUIRE(written(found) == text);
  }
}

}  // namespace

TEST_CASE("a registration, a receipt, a direction and news are read as they were written") {
  registration what;
  REQUIRE(registration::decode(written(mine).data(), what));
  CHECK(what == mine);
  receipt answer;
  receipt const said{{news_kind::rank_taken, 7, 3, {}}, 42, 1'000'000, 1 << 20};
  REQUIRE(receipt::decode(written(said).data(), answer));
  CHECK(answer.what.kind == news_kind::rank_taken);
  CHECK(answer.what.rank == 7);
  CHECK(answer.what.count == 3);
  CHECK(answer.session == 42);
  CHECK(answer.rest_us == 1'000'000);
  CHECK(answer.told == 1 << 20);
  direction way;
  REQUIRE(direction::decode(written(direction{{}, address::loopback(5)}).data(), way));
  CHECK(way.parent == address::loopback(5));
  // Bad news has no address behind it.
  news const left{news_kind::left, 3, 1, address::loopback(9)};
  REQUIRE(direction::decode(written(direction{left, {}}).data(), way));
  CHECK(way.what.rank == 3);
  CHECK(way.what.at == address::loopback(9));
  REQUIRE(direction::decode(written(direction{{news_kind::left, 3, 1, {}}, {}}).data(), way));
  CHECK(way.what.at.version == 0);
}

TEST_CASE("news of no known kind, and good news without what it promises, are nonsense") {
  for (std::uint32_t kind = 0; kind < 300; ++kind) {
    news found;
    CHECK(news::decode(written(news{static_cast<news_kind>(kind), 1, 1, {}}).data(), found) ==
          (kind >= 1 && kind <= 5));
  }
  news found;
  CHECK(news::decode(written(news{news_kind::left, collx::no_rank, 1, {}}).data(), found));
  CHECK_FALSE(news::decode(written(news{news_kind::left, -2, 1, {}}).data(), found));
  CHECK_FALSE(news::decode(written(news{news_kind::never_reached_parent, INT32_MIN, 1, {}}).data(), found));
  direction way;
  CHECK_FALSE(direction::decode(written(direction{}).data(), way));
  registration what;
  CHECK_FALSE(registration::decode(written(registration{}).data(), what));
  CHECK_FALSE(registration::decode(written(registration{mine.entry, {}}).data(), what));
}

TEST_CASE("random bytes decode to nothing, or to what encodes to them") {
  check_random<news>(1);
  check_random<registration>(2);
  check_random<receipt>(3);
  check_random<table_entry>(4);
}
