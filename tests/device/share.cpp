// SPDX-License-Identifier: Apache-2.0
// Shares and tiles: together they are all elements, each once, and they are cut where they should be.
#include "collx/device/share.hpp"

#include <initializer_list>

#include <doctest/doctest.h>

namespace {

using collx::device::elements_to_cut;
using collx::device::share;
using collx::device::share_of;
using collx::device::tile_sizes;
using collx::device::tiles;
using collx::device::tiles_of;

}  // namespace

TEST_CASE("shares: one behind the other, cut between cuts, and none of nothing") {
  for (std::size_t count = 0; count <= 70; ++count)
    for (std::size_t const cut : {1u, 4u, 32u})
      for (std::size_t blocks = 1; blocks <= 9; ++blocks) {
        CAPTURE(count);
        CAPTURE(cut);
        CAPTURE(blocks);
        std::size_t next = 0;
        for (std::size_t block = 0; block < blocks; ++block) {
          share const mine = share_of(count, cut, block, blocks);
          REQUIRE(mine.begin == next);
          next += mine.count;
          REQUIRE((next % cut == 0 || next == count));
        }
        REQUIRE(next == count);
      }
}

TEST_CASE("tiles: one behind the other, all but the ends of one size, the first with the head besides") {
  for (std::size_t count = 1; count <= 70; ++count)
    for (std::size_t const each : {1u, 8u, 32u})
      for (std::size_t const head : {0u, 1u, 7u, 31u}) {
        CAPTURE(count);
        CAPTURE(each);
        CAPTURE(head);
        tiles const cut{count, head, each};
        std::size_t next = 0;
        for (std::size_t i = 0; i < cut.number(); ++i) {
          share const mine = cut.at(i);
          REQUIRE(mine.begin == next);
          REQUIRE(mine.count > 0);
          next += mine.count;
          REQUIRE((next == head + (i + 1) * each || (next == count && i + 1 == cut.number())));
        }
        REQUIRE(next == count);
      }
}

TEST_CASE("tiles: whole ones where there are enough, else the least, and no more than a grid may have") {
  constexpr tile_sizes sizes{8, 2};
  CHECK(tiles_of(80, 0, sizes, 10, 1000).number() == 10);
  CHECK(tiles_of(72, 0, sizes, 10, 1000).number() == 36);
  CHECK(tiles_of(73, 1, sizes, 10, 1000).number() == 36);
  CHECK(tiles_of(1, 0, sizes, 10, 1000).number() == 1);
  CHECK(tiles_of(8000, 0, sizes, 10, 1000).number() == 1000);
  CHECK(tiles_of(8001, 0, sizes, 10, 1000).number() == 501);
  for (std::size_t count = 8001; count < 40000; count += 997) {
    tiles const cut = tiles_of(count, 5, sizes, 10, 1000);
    CHECK(cut.number() <= 1000);
    CHECK(cut.each % sizes.whole == 0);
  }
}

TEST_CASE("tiles: the head ends where a line begins, if an element does there") {
  CHECK(elements_to_cut(0x1000, 4, 128, 32) == 0);
  CHECK(elements_to_cut(0x1004, 4, 128, 32) == 31);
  CHECK(elements_to_cut(0x1001, 1, 128, 128) == 127);
  CHECK(elements_to_cut(0x1008, 12, 128, 32) == 10);  // 120 bytes further
  CHECK(elements_to_cut(0x1008, 16, 128, 8) == 0);    // never
}
