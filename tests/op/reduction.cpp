// SPDX-License-Identifier: Apache-2.0
// The operators and the traits that make a callable one.
#include "collx/op/reduction.hpp"

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "collx/op/location.hpp"
#include "collx/op/premultiplied.hpp"

namespace {

struct not_trivial {
  std::string text;
};

[[maybe_unused]] auto const captures_a_string = [s = std::string("x")](int a, int b) {
  return a + b + static_cast<int>(s.size());
};
struct point {
  int x, y;
};
[[maybe_unused]] auto const add_points = [](point a, point b) { return point{a.x + b.x, a.y + b.y}; };
[[maybe_unused]] auto const wants_variables = [](float& a, float& b) { return a + b; };
[[maybe_unused]] auto const returns_nothing = [](int, int) {};

}  // namespace

TEST_CASE("what is a reduction over which type") {
  static_assert(collx::reduction<collx::sum_t, int>);
  static_assert(collx::reduction<collx::sum_t, long double>);
  static_assert(collx::reduction<decltype(add_points), point>);
  static_assert(!collx::reduction<decltype(add_points), int>);
  static_assert(!collx::reduction<decltype(returns_nothing), int>);
  static_assert(collx::reduction<collx::bit_and_t, unsigned char>);
  static_assert(!collx::reduction<collx::bit_and_t, float>);
  static_assert(!collx::reduction<collx::bit_xor_t, collx::bfloat16>);
  static_assert(collx::reduction<collx::bit_or_t, std::byte>);
  static_assert(!collx::reduction<decltype(wants_variables), float>);
  static_assert(!collx::reduction<collx::sum_t, not_trivial>);
  static_assert(!collx::reduction<collx::sum_t, point>);
  static_assert(!collx::reduction<collx::prod_t, point>);
  static_assert(!collx::reduction<collx::max_t, point>);
  static_assert(!collx::reduction<collx::avg_t, point>);
  static_assert(!collx::reduction<collx::logical_or_t, point>);
  static_assert(!collx::reduction<std::remove_const_t<decltype(captures_a_string)>, int>);
  static_assert(collx::reduction<int (*)(int, int), int>);
  CHECK(true);
}

TEST_CASE("the operators do what their names say") {
  CHECK(collx::sum(2, 3) == 5);
  CHECK(collx::prod(2, 3) == 6);
  CHECK(collx::min(2, 3) == 2);
  CHECK(collx::max(2, 3) == 3);
  CHECK(collx::avg(2, 3) == 5);
  CHECK(collx::avg.finish(7, 2) == 3);
  CHECK(collx::avg.finish(-7, 2) == -3);
  CHECK(collx::avg.finish(7.0, 2) == 3.5);
  CHECK(collx::bit_and(6, 3) == 2);
  CHECK(collx::bit_or(6, 3) == 7);
  CHECK(collx::bit_xor(6, 3) == 5);
  CHECK(collx::bit_or(std::byte{6}, std::byte{3}) == std::byte{7});
  CHECK(collx::logical_and(6, 0) == 0);
  CHECK(collx::logical_and(6, 3) == 1);
  CHECK(collx::logical_or(0, 0) == 0);
  CHECK(collx::logical_or(6, 0) == 1);
}

TEST_CASE("an average is divided by the number of ranks, also where the element cannot hold that number") {
  using std::int8_t, std::uint8_t, std::uint16_t;
  CHECK(collx::avg.finish(int8_t{100}, 128) == 0);
  CHECK(collx::avg.finish(int8_t{-100}, 200) == 0);
  CHECK(collx::avg.finish(int8_t{-128}, 128) == -1);
  CHECK(collx::avg.finish(uint8_t{200}, 150) == 1);
  for (collx::rank_t const size : {256, 257, 300, 4096}) {
    CHECK(collx::avg.finish(uint8_t{255}, size) == 0);
    CHECK(collx::avg.finish(int8_t{-128}, size) == 0);
  }
  CHECK(collx::avg.finish(uint16_t{65535}, 4096) == 15);
  CHECK(collx::avg.finish(std::uint32_t{4294967295}, 2) == 2147483647);
  CHECK(collx::avg.finish(std::int64_t{-9}, 4) == -2);
  static_assert(std::is_same_v<decltype(collx::avg.finish(int8_t{1}, 1)), int8_t>);
}

TEST_CASE("operators are called in messages what they are called in programs") {
  auto const name_of = [](auto op) { return std::string(decltype(op)::name); };
  CHECK(name_of(collx::bit_and) == "bit_and");
  CHECK(name_of(collx::bit_or) == "bit_or");
  CHECK(name_of(collx::bit_xor) == "bit_xor");
  CHECK(name_of(collx::logical_and) == "logical_and");
  CHECK(name_of(collx::logical_or) == "logical_or");
  CHECK(name_of(collx::min_location) == "min_location");
  CHECK(name_of(collx::max_location) == "max_location");
  CHECK(name_of(collx::premultiplied_sum(2)) == "premultiplied_sum");
}

// In a constant expression what is undefined does not compile.
static_assert(collx::sum(INT_MAX, 1) == INT_MIN);
static_assert(collx::sum(collx::sum(INT_MAX, 1), -1) == INT_MAX);
static_assert(collx::avg(LLONG_MIN, -1LL) == LLONG_MAX);
static_assert(collx::prod(std::uint16_t{65535}, std::uint16_t{65535}) == 1);
static_assert(collx::prod(INT_MAX, 2) == -2);
static_assert(collx::prod(std::int64_t{1} << 62, std::int64_t{4}) == 0);
static_assert(collx::premultiplied_sum(3).prepare(INT_MAX) == INT_MAX - 2);
static_assert(collx::premultiplied_sum(65535).prepare(std::uint16_t{65535}) == 1);
static_assert(collx::premultiplied_sum(3).prepare(LONG_MAX) == LONG_MAX - 2);
static_assert(collx::premultiplied_sum(-1).prepare(std::int8_t{5}) == -5);
static_assert(collx::sum(true, true) && !collx::prod(true, false));

TEST_CASE("small integers wrap around as in their own type") {
  CHECK(collx::sum(static_cast<unsigned char>(200), static_cast<unsigned char>(100)) == 44);
  CHECK(collx::prod(static_cast<unsigned short>(300), static_cast<unsigned short>(300)) == 24464);
}

TEST_CASE("commutativity is a trait: callables commute unless they say otherwise") {
  static_assert(collx::is_commutative<collx::sum_t>());
  static_assert(collx::is_commutative<decltype(add_points)>());
  static_assert(!collx::is_commutative<decltype(collx::ordered(add_points))>());
  static_assert(collx::reduction<decltype(collx::ordered(add_points)), point>);
  static_assert(!collx::reduction<decltype(collx::ordered(add_points)), int>);
  CHECK(collx::ordered([](int a, int b) { return a - b; })(5, 3) == 2);
}

TEST_CASE("the accumulate type is a trait too, and finish survives it") {
  using wide = decltype(collx::accumulate_in<double>(collx::avg));
  static_assert(std::is_same_v<collx::accumulate_t<wide, float>, double>);
  static_assert(std::is_same_v<collx::accumulate_t<collx::sum_t, float>, float>);
  static_assert(collx::is_commutative<wide>());
  CHECK(wide{}.finish(9.0, 2) == 4.5);
  CHECK(std::string(wide::name) == "avg");
}
