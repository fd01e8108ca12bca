// SPDX-License-Identifier: Apache-2.0
// compiled: as users do, since half of it is left out where nothing is optimised
// combine() on numbers of 16 and 8 bits: every pattern goes through the vector loops as it goes through
// op/small_float.hpp, and a pass over many sources rounds once.
// thread sanitizer: no, there is one thread
#include <cmath>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "collx/device/host_combine.hpp"
#include "device/vector_kinds.hpp"

namespace {

template <class T, class Op>
std::vector<T> combined(std::vector<std::vector<T>> const& sources, Op const& op, bool complete = false) {
  std::vector<T const*> from;
  for (auto const& each : sources) from.push_back(each.data());
  std::vector<T> out(sources[0].size());
  T* to = out.data();
  auto const n = static_cast<std::int32_t>(sources.size());
  collx::device::combine(&to, 1, from.data(), n, out.size(), op, complete, n);
  return out;
}

template <class T>
std::vector<T> all_patterns() {
  std::vector<T> all;
  for (std::uint32_t bits = 0; bits < 1u << (8 * sizeof(T)); ++bits)
    all.push_back(T::from_bits(static_cast<decltype(T().bits())>(bits)));
  return all;
}

template <class T>
std::vector<T> random_patterns(std::size_t count, std::uint64_t seed) {
  collx::replayable_random random(seed);
  std::vector<T> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back(T::from_bits(static_cast<decltype(T().bits())>(random.next())));
  return all;
}

// In bits, but for NaNs, of which there are many.
template <class T>
std::size_t differences(std::vector<T> const& is, std::vector<T> const& should_be) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < is.size(); ++i)
    count += std::isnan(static_cast<float>(should_be[i])) ? !std::isnan(static_cast<float>(is[i]))
                                                          : is[i].bits() != should_be[i].bits();
  return count;
}

template <class T>
void check_patterns() {
  // What is only widened and rounded again stays as it was, to the last bit of a quiet NaN.
  std::vector<T> const all = all_patterns<T>();
  auto const first = [](float a, float) { return a; };
  std::vector<T> const same = combined<T>({all, all}, first);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) wrong += same[i].bits() != T(float(all[i])).bits();
  CHECK(wrong == 0);
  // Products reach every exponent, and everything that is rounded.
  for (std::size_t const sources : {2u, 3u, 6u}) {
    std::vector<std::vector<T>> factors;
    for (std::size_t s = 0; s < sources; ++s) factors.push_back(random_patterns<T>(100'003, s + 1));
    auto const op = [](float a, float b) { return a * b; };
    std::vector<T> expected;
    for (std::size_t i = 0; i < factors[0].size(); ++i) {
      float product = factors[0][i];
      for (std::size_t s = 1; s < sources; ++s) product *= factors[s][i];
      expected.push_back(T(product));
    }
    CHECK(differences(combined<T>(factors, op), expected) == 0);
  }
}

}  // namespace

TEST_CASE("combine: small floats are widened and rounded as their type says, in every loop") {
  device_test::on_every_kind([] {
    check_patterns<collx::float16>();
    check_patterns<collx::bfloat16>();
    check_patterns<collx::float8_e4m3>();
    check_patterns<collx::float8_e5m2>();
  });
}

TEST_CASE("combine: a pass over small floats accumulates in float and rounds once") {
  // 256 + 1 is no bfloat16: added one by one the ones are lost.
  using collx::bfloat16;
  std::vector<std::vector<bfloat16>> sources(9, std::vector<bfloat16>(100, bfloat16(1)));
  sources[0].assign(100, bfloat16(256));
  for (bfloat16 const sum : combined<bfloat16>(sources, collx::sum)) REQUIRE(sum == 264.0f);
  for (bfloat16 const mean : combined<bfloat16>(sources, collx::avg, true))
    REQUIRE(mean == float(bfloat16(264.0f / 9)));
  // An operator on the small type itself is called with it.
  auto const narrow = [](bfloat16 a, bfloat16 b) { return bfloat16(a + b); };
  for (bfloat16 const sum : combined<bfloat16>(sources, narrow)) REQUIRE(sum == 256.0f);
}
