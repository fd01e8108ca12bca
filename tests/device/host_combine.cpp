// SPDX-License-Identifier: Apache-2.0
// compiled: as users do, since half of it is left out where nothing is optimised
// combine(): every number of sources and destinations, odd counts, destinations that are sources,
// data aligned to elements only; and arithmetic types with every operator: all where there is one kind of
// vectors (baseline.cpp), since same_bits.cpp finds what another one makes different.
// thread sanitizer: no, there is one thread
#include "collx/device/host_combine.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/array.hpp"
#include "collx/core/random.hpp"
#include "device/operators.hpp"
#include "device/strip.hpp"
#include "device/vector_kinds.hpp"
#include "is_sample.hpp"

namespace {

using collx::device::combine;
using device_test::strip;

// Not associative and not commutative: only folding from the left gives these values.
constexpr auto mix = [](unsigned a, unsigned b) { return a * 31 + (b ^ a >> 3); };

std::vector<unsigned> folded(std::vector<strip<unsigned>>& sources, std::size_t count) {
  std::vector<unsigned> result(sources[0].data(), sources[0].data() + count);
  for (std::size_t s = 1; s < sources.size(); ++s)
    for (std::size_t i = 0; i < count; ++i) result[i] = mix(result[i], sources[s].data()[i]);
  return result;
}

void check_shape(std::size_t source_count, std::size_t destination_count, std::size_t count,
                 bool first_is_source, std::size_t streamed) {
  collx::replayable_random random(source_count * 100 + count);
  std::vector<strip<unsigned>> sources, destinations;
  for (std::size_t s = 0; s < source_count; ++s) {
    sources.emplace_back(count, s % 4 * 4);
    for (std::size_t i = 0; i < count; ++i) sources.back().data()[i] = static_cast<unsigned>(random.next());
  }
  for (std::size_t d = 0; d < destination_count; ++d) destinations.emplace_back(count, (d + 1) % 16 * 4);
  std::vector<unsigned const*> from;
  std::vector<unsigned*> to;
  for (auto& each : sources) from.push_back(each.data());
  for (auto& each : destinations) to.push_back(each.data());
  if (first_is_source && destination_count > 0) to[0] = sources[source_count / 2].data();
  std::vector<unsigned> const expected = folded(sources, count);
  combine(to.data(), static_cast<std::int32_t>(destination_count), from.data(),
          static_cast<std::int32_t>(source_count), count, mix, false, 1, static_cast<std::int32_t>(streamed));
  for (unsigned* const destination : to) REQUIRE(std::equal(expected.begin(), expected.end(), destination));
  for (auto const& each : sources) REQUIRE(each.guards_intact());
  for (auto const& each : destinations) REQUIRE(each.guards_intact());
}

template <class T, class Op>
T reference(collx::array<T> const& values, Op const& op) {
  T total = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) total = static_cast<T>(op(total, values[i]));
  if constexpr (requires { op.finish(total, 1); })
    total = static_cast<T>(op.finish(total, static_cast<collx::rank_t>(values.size())));
  return total;
}

template <class T, class Op>
void check_operator(Op const& op) {
  for (std::size_t const source_count : {2u, 3u, 5u}) {
    std::size_t const count = 67;
    std::vector<collx::array<T>> values;  // vector<bool> holds no bool
    for (std::size_t s = 0; s < source_count; ++s) values.emplace_back(count);
    collx::array<T> out(count), mine(source_count);
    std::vector<T const*> from;
    for (std::size_t s = 0; s < source_count; ++s) {
      for (std::size_t i = 0; i < count; ++i) values[s][i] = static_cast<T>((s * 5 + i) % 4);
      from.push_back(values[s].data());
    }
    T* to = out.data();
    combine(&to, 1, from.data(), static_cast<std::int32_t>(source_count), count, op, true,
            static_cast<collx::rank_t>(source_count));
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t s = 0; s < source_count; ++s) mine[s] = values[s][i];
      REQUIRE(out[i] == reference(mine, op));
    }
  }
}

template <class T>
void check_all_operators() {
  device_test::for_each_operator<T>([](auto const& op) { check_operator<T>(op); });
}

// The most different ones: one that finishes, one that compares.
template <class... Ts>
void check_two_operators() {
  (check_operator<Ts>(collx::avg), ...);
  (check_operator<Ts>(collx::max), ...);
}

}  // namespace

TEST_CASE("combine: 1 to 9 sources, 0 to 5 destinations, counts around vectors and blocks") {
  // Blocks, if an implementation has them, have a power of two of bytes.
  for (std::size_t source_count = 1; source_count <= 9; ++source_count)
    for (std::size_t destination_count = 0; destination_count <= 5; ++destination_count)
      for (std::size_t const count : {0u, 1u, 3u, 16u, 17u, 255u, 256u, 257u, 511u, 512u, 513u, 1025u, 4099u})
        for (bool const first_is_source : {false, true}) {
          CAPTURE(source_count);
          CAPTURE(destination_count);
          CAPTURE(count);
          device_test::on_every_kind([&] {
            for (std::size_t streamed = 0; streamed <= destination_count; ++streamed)
              check_shape(source_count, destination_count, count, first_is_source, streamed);
          });
        }
}

TEST_CASE("combine: two sources into one destination, every short count and every alignment of an element") {
  for (std::size_t count = 0; count <= 150; ++count)
    for (std::size_t shift = 0; shift < 16; ++shift) {
      strip<unsigned> a(count, shift * 4), b(count, (shift * 3) % 16 * 4), out(count, (shift * 7) % 16 * 4);
      for (std::size_t i = 0; i < count; ++i) {
        a.data()[i] = static_cast<unsigned>(i * 77);
        b.data()[i] = static_cast<unsigned>(i * 13 + shift);
      }
      unsigned const* from[] = {a.data(), b.data()};
      unsigned* to[] = {out.data()};
      device_test::on_every_kind([&] {
        std::fill_n(out.data(), count, 0u);
        combine(to, 1, from, 2, count, mix, false, 1, shift % 2 == 0);
        for (std::size_t i = 0; i < count; ++i) REQUIRE(out.data()[i] == mix(a.data()[i], b.data()[i]));
        REQUIRE(out.guards_intact());
      });
    }
}

TEST_CASE("combine: all operators, on a narrow, a signed, a wide and two floating types") {
  check_all_operators<int>();
  check_all_operators<float>();
#if !defined(COLLX_TEST_SAMPLE) && !defined(COLLX_AVX2)
  check_all_operators<unsigned char>();
  check_all_operators<unsigned long long>();
  check_all_operators<long double>();
#endif
}

TEST_CASE("combine: all arithmetic types") {
  check_two_operators<signed char, unsigned short, long, double>();
#if !defined(COLLX_TEST_SAMPLE) && !defined(COLLX_AVX2)
  check_two_operators<char, short, unsigned, unsigned long, long long>();
#endif
  check_operator<bool>(collx::logical_or);
}

TEST_CASE("combine: the final scaling is applied only to a complete result") {
  int const a[] = {10, 20}, b[] = {2, 4};
  int const* from[] = {a, b};
  int out[2];
  int* to[] = {out};
  combine(to, 1, from, 2, 2, collx::avg, false, 4);
  CHECK(out[0] == 12);
  CHECK(out[1] == 24);
  combine(to, 1, from, 2, 2, collx::avg, true, 4);
  CHECK(out[0] == 3);
  CHECK(out[1] == 6);
}

TEST_CASE("combine: partial results are held in the accumulate type, and scaled in it") {
  signed char const a[] = {100}, b[] = {100}, c[] = {-100};
  signed char const* from[] = {a, b, c};
  signed char out[1];
  signed char* to[] = {out};
  combine(to, 1, from, 3, 1, collx::accumulate_in<int>(collx::sum), true, 3);
  CHECK(out[0] == 100);
  combine(to, 1, from, 2, 1, collx::accumulate_in<int>(collx::avg), true, 2);
  CHECK(out[0] == 100);
}

TEST_CASE("combine: elements larger than a block") {
  struct large {
    int values[1000];
  };
  static large a, b, out;
  for (int i = 0; i < 1000; ++i) {
    a.values[i] = i;
    b.values[i] = 2 * i;
  }
  large const* from[] = {&a, &b, &a};
  large* to[] = {&out};
  auto const add = [](large const& x, large const& y) {
    large total;
    for (int i = 0; i < 1000; ++i) total.values[i] = x.values[i] + y.values[i];
    return total;
  };
  combine(to, 1, from, 3, 1, add, true, 3);
  CHECK(out.values[999] == 4 * 999);
}

TEST_CASE("combine: infinities and NaN go through sums and comparisons as the operators say") {
  float const nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  std::vector<float> const a{nan, 1, infinity, -0.0f}, b{1, nan, -infinity, 0.0f};
  float const* from[] = {a.data(), b.data()};
  float out[4];
  float* to[] = {out};
  combine(to, 1, from, 2, 4, collx::sum, false, 2);
  CHECK(out[0] != out[0]);
  CHECK(out[1] != out[1]);
  CHECK(out[2] != out[2]);
  combine(to, 1, from, 2, 4, collx::max, false, 2);
  CHECK(out[0] != out[0]);  // kept when it comes first
  CHECK(out[1] == 1);       // dropped when it comes second
  CHECK(out[2] == infinity);
}
