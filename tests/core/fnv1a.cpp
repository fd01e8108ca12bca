// SPDX-License-Identifier: Apache-2.0
// FNV-1a, by the vectors that its authors have published, and what is numbered by it.
#include "collx/core/fnv1a.hpp"

#include <array>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "collx/tune/question.hpp"

using collx::fnv1a_32;
using collx::fnv1a_64;

static_assert(fnv1a_32("") == 0x811c9dc5u && fnv1a_64("") == 0xcbf29ce484222325u);
static_assert(fnv1a_32("a") == 0xe40c292cu && fnv1a_64("a") == 0xaf63dc4c8601ec8cu);
static_assert(fnv1a_32("foobar") == 0xbf9cf968u && fnv1a_64("foobar") == 0x85944171f73967e8u);

TEST_CASE("fnv1a: the same while compiling and while running, of text and of bytes") {
  std::array<unsigned char, 6> const bytes{'f', 'o', 'o', 'b', 'a', 'r'};
  CHECK(fnv1a_32(bytes.data(), bytes.size()) == 0xbf9cf968u);
  CHECK(fnv1a_64(bytes.data(), bytes.size()) == 0x85944171f73967e8u);
  CHECK(fnv1a_64(reinterpret_cast<std::byte const*>(bytes.data()), bytes.size()) == 0x85944171f73967e8u);
  std::string_view const text = "foobar";
  CHECK(fnv1a_64(text.data(), text.size()) == fnv1a_64("foobar"));
}

TEST_CASE("fnv1a: bytes above 127 count as what they are, whatever the sign of char") {
  char const text[] = "\xff\x80";
  unsigned char const bytes[] = {0xff, 0x80};
  CHECK(fnv1a_32(text) == fnv1a_32(bytes, 2));
  CHECK(fnv1a_64(text) == fnv1a_64(bytes, 2));
  CHECK(fnv1a_64(bytes, 1) == (0xcbf29ce484222325u ^ 0xffu) * 0x100000001b3u);
}

TEST_CASE("fnv1a: pieces one behind the other are the whole, and a zero is a byte") {
  CHECK(fnv1a_32("bar", 3, fnv1a_32("foo")) == 0xbf9cf968u);
  CHECK(fnv1a_64("bar", 3, fnv1a_64("foo")) == 0x85944171f73967e8u);
  CHECK(fnv1a_64("foobar", 7) == 0x34531ca7168b8f38u);
  CHECK(fnv1a_64("23", 3, fnv1a_64("1", 2)) != fnv1a_64("3", 2, fnv1a_64("12", 3)));
}

TEST_CASE("words of tables are numbered so, also what their text has no room for; the empty one is 0") {
  CHECK(collx::tune::word("foobar").number == 0x85944171f73967e8u);
  CHECK(collx::tune::word("").number == 0);
  std::string const longer(100, 'a');
  collx::tune::word const cut(longer.c_str());
  CHECK(cut.number == fnv1a_64(longer.c_str()));
  CHECK(std::string_view(cut.text) == longer.substr(0, 63));
}
