// SPDX-License-Identifier: Apache-2.0
// The words in docs/algorithms.md follow from the numbers, and from nothing else.
#include "formula.hpp"

#include <doctest/doctest.h>

namespace {

std::vector<tools::sample> samples(std::int32_t last, tools::fraction (*value)(std::int64_t)) {
  std::vector<tools::sample> list;
  for (std::int32_t n = 2; n <= last; ++n) list.push_back({n, value(n)});
  return list;
}

}  // namespace

TEST_CASE("formula: the words are those of the formula that agrees everywhere") {
  auto const ring = samples(64, [](std::int64_t n) { return tools::fraction{2 * (n - 1), n}; });
  CHECK(tools::describe(ring, tools::vector_formulas()) == "2(n-1)/n M");
  auto const tree = samples(64, [](std::int64_t n) { return tools::fraction{tools::ceil_log2(n)}; });
  CHECK(tools::describe(tree, tools::round_formulas()) == "⌈log₂ n⌉");
  auto const pairs = samples(64, [](std::int64_t n) { return tools::fraction{n % 2 == 0 ? n - 1 : n}; });
  CHECK(tools::describe(pairs, tools::round_formulas()) == "n-1, or n if n is odd");
  auto const ports = samples(64, [](std::int64_t n) {
    return tools::fraction{n <= 4 ? 1 : n <= 16 ? 2 : 3};
  });
  CHECK(tools::describe(ports, tools::round_formulas()) == "⌈log₄ n⌉");
}

TEST_CASE("formula: powers of two and other sizes get words of their own where they differ") {
  auto const folded = samples(64, [](std::int64_t n) {
    bool const power = (n & (n - 1)) == 0;
    return tools::fraction{tools::floor_log2(n) + (power ? 0 : 2)};
  });
  CHECK(tools::describe(folded, tools::round_formulas()) == "log₂ n; else ⌊log₂ n⌋ + 2");
}

TEST_CASE("formula: what the texts call s, d and g is what they say") {
  CHECK(tools::digit_sum(27, 4) == 1 + 2 + 3);
  CHECK(tools::digits_below(4, 2) == 1 + 1 + 2);
  CHECK(tools::digits_below(17, 4) == 3 + 12 + 9 + 1);
  CHECK(tools::multiplied_by_four(48) == 3 * 2 + 2);
  CHECK(tools::doubled_guests(11) == 1 + 2 + 3);
  CHECK(tools::swung_guests(5) == 1 + 1);
  for (std::int64_t n = 2; n < 64; ++n) CHECK(tools::swung_guests(n) <= tools::doubled_guests(n));
}

TEST_CASE("formula: a number without a formula is told as a range") {
  auto const odd = samples(9, [](std::int64_t n) { return tools::fraction{n * n}; });
  CHECK(tools::describe(odd, tools::round_formulas()) == "4 to 64; else 9 to 81");
}

TEST_CASE("formula: decimals are as short as they can be") {
  CHECK(tools::decimal({3, 2}) == "1.5");
  CHECK(tools::decimal({4, 2}) == "2");
  CHECK(tools::decimal({1, 3}) == "0.333");
}
