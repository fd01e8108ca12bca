// SPDX-License-Identifier: Apache-2.0
// What the verifier is made of: sets of contributions, happens-before, and arithmetic on peer sets.
#include <set>

#include <doctest/doctest.h>

#include "collx/schedule/verify.hpp"

namespace {

using namespace collx;
using namespace collx::detail;

}  // namespace

TEST_CASE("contributions: a sum knows its parts, their chunk and their order") {
  contributions values(130, 3);
  std::int32_t const sum = values.begin(values.input(2, 1));
  CHECK(values.add(sum, values.input(70, 1)) == fault::none);
  CHECK(values.ascending(sum));
  CHECK(values.count(sum) == 2);
  CHECK(values.chunk_of(sum) == 1);
  CHECK(values.has(sum, 70));
  CHECK_FALSE(values.has(sum, 71));
  CHECK(values.add(sum, values.input(70, 1)) == fault::combined_twice);
  CHECK(values.add(sum, values.input(71, 2)) == fault::different_chunks);
  CHECK(values.add(sum, values.input(69, 1)) == fault::none);
  CHECK_FALSE(values.ascending(sum));
}

TEST_CASE("contributions: sums of neighbouring blocks stay in order, overlapping ones do not") {
  contributions values(8, 1);
  std::int32_t const low = values.begin(values.input(0, 0));
  CHECK(values.add(low, values.input(1, 0)) == fault::none);
  std::int32_t const high = values.begin(values.input(2, 0));
  CHECK(values.add(high, values.input(3, 0)) == fault::none);
  std::int32_t const both = values.begin(low);
  CHECK(values.add(both, high) == fault::none);
  CHECK(values.ascending(both));
  CHECK(values.count(low) == 2);  // values never change once another is begun
  std::int32_t const reversed = values.begin(high);
  CHECK(values.add(reversed, low) == fault::none);
  CHECK_FALSE(values.ascending(reversed));
}

TEST_CASE("causality: knowledge travels with messages, and only with them") {
  causality past(3);
  past.begin(0, 0);
  past.begin(1, 0);
  stamp const first = past.send(0, false);
  CHECK_FALSE(past.knows(1, 0, 0));
  past.receive(1, 0, first);
  CHECK(past.knows(1, 0, 0));
  CHECK_FALSE(past.knows(1, 0, 1));
  stamp const second = past.send(1, false);
  past.begin(0, 1);  // rank 0 goes on; what it does now is not in the second message
  past.receive(2, 1, second);
  CHECK(past.knows(2, 0, 0));
  CHECK_FALSE(past.knows(2, 0, 1));
  CHECK_FALSE(past.knows(0, 1, 0));
}

TEST_CASE("causality: a considered message counts until it is forgotten") {
  causality past(3);
  past.begin(0, 4);
  stamp const sent = past.send(0, false);
  past.consider(0, sent);
  CHECK(past.knows(1, 0, 4));
  CHECK_FALSE(past.knows(1, 2, 0));
  past.forget();
  CHECK_FALSE(past.knows(1, 0, 4));
}

TEST_CASE("mail: first in, first out for each pair of ranks") {
  mail letters(2);
  std::int32_t const a = letters.post({.sender = 0, .receiver = 1});
  std::int32_t const b = letters.post({.sender = 0, .receiver = 1});
  std::int32_t const c = letters.post({.sender = 1, .receiver = 0});
  CHECK(letters.in_flight(0, 1) == 2);
  CHECK(letters.take(0, 1, 7) == a);
  CHECK(letters[a].taken_at == 7);
  CHECK(letters.take(0, 1, 8) == b);
  CHECK(letters.leftover() == c);
  CHECK(letters.take(1, 0, 0) == c);
  CHECK(letters.leftover() == -1);
}

TEST_CASE("peer sets: closed forms agree with counting") {
  for (rank_t size = 1; size <= 12; ++size)
    for (rank_t first = 0; first < size; ++first)
      for (std::int32_t stride = -size; stride <= size; ++stride)
        for (std::int32_t count = 1; count <= size + 1; ++count) {
          peer_set const peers{first, stride, count};
          std::set<rank_t> members;
          for (std::int32_t k = 0; k < count; ++k) members.insert(peers.member(k, size));
          bool const distinct = static_cast<std::int32_t>(members.size()) == count;
          REQUIRE((check_set(peers, size) == fault::none) == distinct);
          for (rank_t r = 0; distinct && r < size; ++r) {
            std::int32_t const k = peers.position(r, size);
            REQUIRE((k >= 0) == members.contains(r));
            if (k >= 0) REQUIRE(peers.member(k, size) == r);
          }
        }
}
