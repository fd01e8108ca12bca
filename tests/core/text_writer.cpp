// SPDX-License-Identifier: Apache-2.0
// Text in memory of a fixed size: pieces follow each other, and what has no room is left out.
#include "collx/core/text_writer.hpp"

#include <string>

#include <doctest/doctest.h>

using collx::text_writer;

TEST_CASE("text_writer: pieces follow each other") {
  char text[40];
  text_writer out{text, sizeof text};
  out.add("rank %d of %d", 3, 8);
  out.add(": %s", "100 %d");
  out.add(" or 50 %%");
  CHECK(std::string(text) == "rank 3 of 8: 100 %d or 50 %");
}

TEST_CASE("text_writer: what has no room any more is left out, and nothing behind the room is written to") {
  for (std::size_t room = 1; room <= 12; ++room) {
    CAPTURE(room);
    char text[16];
    for (char& each : text) each = '#';
    text_writer out{text, room};
    for (int i = 0; i < 4; ++i) out.add("abc");
    out.add("%c", 'd');
    std::string const all = "abcabcabcabcd";
    CHECK(std::string(text) == all.substr(0, room - 1));
    for (std::size_t i = room; i < sizeof text; ++i) CHECK(text[i] == '#');
  }
}
