// SPDX-License-Identifier: Apache-2.0
// A message is a value: a copy goes on by itself.
#include "collx/tune/message.hpp"

#include <string>

#include <doctest/doctest.h>

using collx::tune::message;

TEST_CASE("message: copies have the text so far, and go on apart") {
  message one;
  one.add("%d ranks", 4);
  message other = one;
  other.add(" over %s", "tcp");
  CHECK(std::string(one.text()) == "4 ranks");
  CHECK(std::string(other.text()) == "4 ranks over tcp");
  one = other;
  one.add("%c", '.');
  message const& same = one;
  one = same;
  CHECK(std::string(one.text()) == "4 ranks over tcp.");
  CHECK(std::string(other.text()) == "4 ranks over tcp");
}

TEST_CASE("message: what has no room any more is left out") {
  message long_one;
  std::string const piece(999, 'x');
  for (int i = 0; i < 3; ++i) long_one.add("%s", piece.c_str());
  CHECK(std::string(long_one.text()) == std::string(1599, 'x'));
  message const copy = long_one;
  CHECK(std::string(copy.text()).size() == 1599);
}
