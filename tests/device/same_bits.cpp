// SPDX-License-Identifier: Apache-2.0
// compiled: as users do, since there is one kind of vectors where nothing is optimised
// combine() gives the same bits with every kind of vectors: floating types and an integer of each width,
// signed or not, with all operators (sample.hpp: some of them), counts around the vectors of each kind, any
// alignment, past the caches and not.
// sanitizers: no, combine.cpp and host_combine.cpp run that code under them
#include <complex>
#include <cstring>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "collx/core/random.hpp"
#include "collx/device/host_combine.hpp"
#include "device/operators.hpp"
#include "device/strip.hpp"
#include "device/vector_kinds.hpp"
#include "sample.hpp"

namespace {

using device_test::strip;

constexpr std::size_t counts[] = {0,  1,  2,  3,  4,  5,  7,  8,  9,   15,  16,  17,  31,  32,
                                  33, 47, 63, 64, 65, 95, 96, 97, 127, 128, 129, 255, 257, 1031};

// Values that every operator combines without overflow, and floating ones of all kinds.
template <class T>
T value_of(collx::replayable_random& random) {
  if constexpr (std::is_same_v<T, bool>) return random.below(2) == 1;
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(random.below(100));
  else if constexpr (requires { typename T::value_type; })
    return {value_of<typename T::value_type>(random), value_of<typename T::value_type>(random)};
  else if constexpr (collx::is_small_float<T>)
    return T::from_bits(static_cast<decltype(T().bits())>(random.next()));
  else {
    auto const mantissa = static_cast<T>(static_cast<double>(random.below(1u << 30)) - (1u << 29));
    constexpr T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    constexpr T scales[] = {T(1e-30), T(1e-12), T(1e-9), T(1), T(1e20), -infinity, infinity, nan};
    return mantissa * scales[random.below(8)];
  }
}

template <class T>
bool is_nan(T const& value) {
  if constexpr (requires { value.real(); }) return is_nan(value.real()) || is_nan(value.imag());
  else return !(value == value);
}

// In bits, but for NaNs, whose payload the compiler chooses by the order of operands, and for padding.
template <class T>
bool same(T const& a, T const& b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) && is_nan(b);
  return std::is_same_v<T, long double> ? a == b : std::memcmp(&a, &b, sizeof(T)) == 0;
}

// combine() with one operator, whose type nothing else here depends on.
template <class T>
struct combination {
  void (*run)(void const* op, T* const* to, T const* const* from, collx::rank_t source_count,
              std::size_t count, bool complete, std::int32_t streamed);
  void const* op;
};
template <class T, class Op>
void combine_with(void const* op, T* const* to, T const* const* from, collx::rank_t source_count,
                  std::size_t count, bool complete, std::int32_t streamed) {
  collx::device::combine(to, 2, from, source_count, count, *static_cast<Op const*>(op), complete,
                         source_count, streamed);
}

// How many elements differ from what the baseline's code makes of them, and what was written beside.
template <class T>
std::size_t differences(combination<T> const& combines, std::size_t count, std::size_t source_count,
                        std::int32_t streamed) {
  collx::replayable_random random(count * 8 + source_count);
  std::vector<strip<T>> sources, destinations;
  for (std::size_t s = 0; s < source_count; ++s) {
    sources.emplace_back(count, (s + count) * sizeof(T) % 64);
    for (std::size_t i = 0; i < count; ++i) sources[s].data()[i] = value_of<T>(random);
  }
  for (int d = 0; d < 2; ++d) destinations.emplace_back(count, count * sizeof(T) % 64);
  std::vector<T const*> from;
  for (auto& each : sources) from.push_back(each.data());
  T* const to[] = {destinations[0].data(), destinations[1].data()};
  bool const complete = count % 2 == 1;

  std::vector<std::vector<std::byte>> results;
  std::size_t wrong = 0;
  device_test::on_every_kind([&] {
    for (T* const each : to) std::memset(static_cast<void*>(each), 0x5A, count * sizeof(T));
    combines.run(combines.op, to, from.data(), static_cast<collx::rank_t>(source_count), count, complete,
                 streamed);
    for (auto& each : destinations) {
      auto const* const bytes = reinterpret_cast<std::byte const*>(each.data());
      results.emplace_back(bytes, bytes + count * sizeof(T));
      wrong += !each.guards_intact();
    }
  });
  for (auto const& each : results)
    for (std::size_t i = 0; i < count; ++i) {
      T is, should_be;
      std::memcpy(static_cast<void*>(&is), each.data() + i * sizeof(T), sizeof(T));
      std::memcpy(static_cast<void*>(&should_be), results[0].data() + i * sizeof(T), sizeof(T));
      wrong += !same(is, should_be);
    }
  return wrong;
}

// An accumulate type of which no power of two fills a vector.
struct three_bytes {
  unsigned char bytes[3];
  three_bytes() = default;
  explicit three_bytes(unsigned short value)
      : bytes{static_cast<unsigned char>(value), static_cast<unsigned char>(value >> 8), 0} {}
  explicit operator unsigned short() const { return static_cast<unsigned short>(bytes[0] | bytes[1] << 8); }
};

three_bytes operator*(three_bytes const& a, three_bytes const& b) {
  return three_bytes(
      static_cast<unsigned short>(static_cast<unsigned short>(a) ^ static_cast<unsigned short>(b)));
}

template <class T>
void check(combination<T> const& combines) {
  std::size_t wrong = 0;
  for (std::size_t const count : counts)
    for (std::size_t const source_count : {2u, 3u})
      for (std::int32_t streamed = 0; streamed <= 2; ++streamed)
        wrong += differences(combines, count, source_count, streamed);
  CAPTURE(sizeof(T));
  CHECK(wrong == 0);
}
template <class T, class Op>
void check(Op const& op) {
  check(combination<T>{&combine_with<T, Op>, &op});
}

#if defined(COLLX_TEST_SAMPLE)
// One that adds, one that finishes, one that compares: combine_operators.cpp has all of them.
template <class Types>
void check_all() {
  Types::for_each([]<class T> {
    check<T>(collx::sum);
    check<T>(collx::avg);
    check<T>(collx::max);
  });
}
using floating_types = collx::type_list<double, collx::bfloat16, collx::float8_e4m3>;
using integers = collx::type_list<unsigned char, short, unsigned, long>;
#else
template <class Types>
void check_all() {
  Types::for_each([]<class T> { device_test::for_each_operator<T>([](auto const& op) { check<T>(op); }); });
}
using floating_types =
    collx::type_list<float, double, collx::float16, collx::bfloat16, collx::float8_e4m3, collx::float8_e5m2>;
using integers = collx::type_list<signed char, unsigned short, int, unsigned long>;
#endif

}  // namespace

TEST_CASE("combine: the same bits with every kind of vectors, floating types") {
  check_all<floating_types>();
  check<long double>(collx::sum);
  check<float>(collx::accumulate_in<double>(collx::sum));
  check<std::complex<float>>(collx::sum);
  check<std::complex<double>>(collx::sum);
}

TEST_CASE("combine: the same bits with every kind of vectors, accumulated in a type that fills no vector") {
  constexpr auto op = collx::accumulate_in<three_bytes>(collx::prod);
  check<unsigned short>(op);
  // Whose product may multiply and add, so that one kind combines all elements.
  CHECK(!collx::device::detail::rounds_alike<unsigned short, std::remove_const_t<decltype(op)>>);
}

TEST_CASE("combine: the same bits with every kind of vectors, integers") {
  check_all<integers>();
  check<bool>(collx::logical_or);
}

// Where the baseline has no instruction that multiplies and adds, AVX2 code must not have it either. With
// AVX-512 compilers use it: such an operator is rounded otherwise there (docs/reproducibility.md).
#if defined(COLLX_AVX2) && !defined(__FMA__)
TEST_CASE("combine: what multiplies and adds is rounded by AVX2 as by the baseline") {
  namespace cpu = collx::device::cpu;
  if (cpu::widest_vectors() < cpu::vector_kind::avx2) {
    MESSAGE("SKIPPED: this processor has no AVX2");
    return;
  }
  constexpr std::size_t count = 1000;
  collx::replayable_random random(1);
  std::vector<float> a(count), b(count);
  for (std::size_t i = 0; i < count; ++i) {
    a[i] = static_cast<float>(random.below(1u << 30)) / 3;
    b[i] = static_cast<float>(random.below(1u << 30)) / 7;
  }
  auto const op = [](float x, float y) { return x * 0.3f + y * 0.7f; };
  float const* const from[] = {a.data(), b.data()};
  std::vector<float> results[2] = {std::vector<float>(count), std::vector<float>(count)};
  auto const before = cpu::vectors_in_use;
  for (int kind = 0; kind < 2; ++kind) {
    cpu::vectors_in_use = static_cast<cpu::vector_kind>(kind);
    float* const to = results[kind].data();
    collx::device::combine(&to, 1, from, 2, count, op, false, 2);
  }
  cpu::vectors_in_use = before;
  CHECK(std::memcmp(results[0].data(), results[1].data(), count * sizeof(float)) == 0);
}
#endif

#if defined(COLLX_AVX2)
// Fragments, pieces and tails are cut otherwise on other ranks.
TEST_CASE("combine: what multiplies and adds has the same bits however few elements there are at a time") {
  namespace cpu = collx::device::cpu;
  constexpr std::size_t count = 1000;
  collx::replayable_random random(2);
  std::vector<float> a(count), b(count), whole(count), pieces(count);
  for (std::size_t i = 0; i < count; ++i) {
    a[i] = static_cast<float>(random.below(1u << 30)) / 3;
    b[i] = static_cast<float>(random.below(1u << 30)) / 7;
  }
  auto const op = [](float x, float y) { return x * 0.3f + y * 0.7f; };
  auto const combine = [&](float* to, std::size_t at, std::size_t some) {
    float const* const from[] = {a.data() + at, b.data() + at};
    float* const into = to + at;
    collx::device::combine(&into, 1, from, 2, some, op, false, 2);
  };
  auto const before = cpu::vectors_in_use, widest = cpu::widest_vectors();
  for (int kind = 0; kind <= static_cast<int>(widest); ++kind) {
    CAPTURE(kind);
    cpu::vectors_in_use = static_cast<cpu::vector_kind>(kind);
    combine(whole.data(), 0, count);
    for (std::size_t piece = 1; piece <= 200; ++piece) {
      for (std::size_t at = 0; at < count; at += piece)
        combine(pieces.data(), at, piece < count - at ? piece : count - at);
      REQUIRE(std::memcmp(whole.data(), pieces.data(), count * sizeof(float)) == 0);
    }
  }
  cpu::vectors_in_use = before;
}
#endif
