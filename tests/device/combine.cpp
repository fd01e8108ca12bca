// SPDX-License-Identifier: Apache-2.0
// compiled: as users do, since half of it is left out where nothing is optimised
// combine() and copy() of teams: every short count, number of sources and destinations, alignment and team;
// in place; and that no element is touched by two threads, which the thread sanitizer watches.
#include "collx/device/combine.hpp"

#include <doctest/doctest.h>

#include "collx/op/premultiplied.hpp"
#include "device/combine_trial.hpp"

namespace {

using device_test::host_team;
using device_test::outline;
using device_test::run_team;
using device_test::strip;
using device_test::subject_of;
using device_test::wrong_trials;

// Not associative and not commutative: only folding from the left gives these values.
constexpr auto mix = [](unsigned a, unsigned b) { return a * 31 + (b ^ a >> 3); };
constexpr auto mix_bytes = [](std::uint8_t a, std::uint8_t b) {
  return static_cast<std::uint8_t>(a * 31 + (b ^ a >> 3));
};

constexpr auto any_bits = [](collx::replayable_random& random) {
  return static_cast<unsigned>(random.next());
};
constexpr auto any_byte = [](collx::replayable_random& random) {
  return static_cast<std::uint8_t>(random.next());
};

// Bytes that do not matter, only that they are all different.
template <std::size_t Bytes, class Word>
struct block {
  Word words[Bytes / sizeof(Word)];
};

constexpr auto mix_blocks = []<class Block>(Block const& a, Block const& b) {
  Block result;
  for (std::size_t i = 0; i < std::size(a.words); ++i)
    result.words[i] =
        static_cast<std::remove_reference_t<decltype(a.words[0])>>(a.words[i] * 31 + b.words[i]);
  return result;
};

// Several batches of the largest team; more only takes time.
constexpr std::size_t vector_bytes_max = 4000;

template <std::size_t Bytes, class Word>
void check_struct() {
  using element = block<Bytes, Word>;
  std::vector<outline> outlines;
  for (std::size_t const count : {0u, 1u, 2u, 3u, 4u, 5u, 7u, 8u, 31u, 65u, 300u}) {
    if (count * Bytes > vector_bytes_max) break;
    for (int sources = 1; sources <= 4; ++sources)
      for (std::size_t shift = 0; shift < 16; shift += alignof(element))
        for (std::size_t const spread : {std::size_t{0}, alignof(element)})
          outlines.push_back({count, sources, 2, shift, spread});
  }
  auto const any_block = [](collx::replayable_random& random) {
    element result;
    for (Word& each : result.words) each = static_cast<Word>(random.next());
    return result;
  };
  CAPTURE(Bytes);
  for (int threads : {1, 3})
    CHECK(wrong_trials(threads, outlines, subject_of<element>(mix_blocks, any_block)) == 0);
}

// What copy() leaves, in every destination, and beside them.
template <class T>
bool copies(host_team& mine, std::size_t count, std::size_t shift, std::size_t spread, int destination_count,
            std::vector<strip<T>>& vectors) {
  if (mine.rank() == 0) {
    vectors.clear();
    for (int j = 0; j <= destination_count; ++j)
      vectors.emplace_back(count, (shift + static_cast<std::size_t>(j) * spread) % 64);
    std::byte* const bytes = reinterpret_cast<std::byte*>(vectors[0].data());
    for (std::size_t i = 0; i < count * sizeof(T); ++i) bytes[i] = static_cast<std::byte>(i * 7 + count);
  }
  mine.sync();
  T* to[4];
  for (int j = 0; j < destination_count; ++j) to[j] = vectors[static_cast<std::size_t>(j) + 1].data();
  collx::device::copy(mine, to, destination_count, vectors[0].data(), count);
  mine.sync();
  bool right = true;
  for (auto& each : vectors)
    right =
        right && each.guards_intact() && std::memcmp(each.data(), vectors[0].data(), count * sizeof(T)) == 0;
  mine.sync();
  return right;
}

template <class T>
void check_copies() {
  for (int threads = 1; threads <= 4; ++threads) {
    std::vector<strip<T>> vectors;
    int wrong = 0;
    run_team(threads, [&](host_team& mine) {
      int wrong_here = 0;
      for (std::size_t const count : {0u, 1u, 2u, 3u, 15u, 16u, 17u, 33u, 70u, 600u}) {
        if (count * sizeof(T) > vector_bytes_max) break;
        for (std::size_t shift = 0; shift < 16; shift += alignof(T))
          for (std::size_t const spread : {std::size_t{0}, alignof(T)})
            wrong_here += !copies(mine, count, shift, spread, static_cast<int>(count % 4), vectors);
      }
      if (mine.rank() == 0) wrong = wrong_here;
    });
    CAPTURE(threads);
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("teams combine: every count to 70 and some beyond, 1 to 9 sources, 1 to 4 destinations, in place") {
  std::vector<std::size_t> counts{127, 128, 129, 1000, 4099};
  for (std::size_t count = 0; count <= 70; ++count) counts.push_back(count);
  std::vector<outline> outlines;
  for (std::size_t const count : counts)
    for (int sources = 1; sources <= 9; ++sources) {
      int const varied = static_cast<int>(count) + sources;
      int const destinations = 1 + varied % 4;
      outlines.push_back({count, sources, destinations, 4 * (count % 16), 0});
      outlines.push_back({count, sources, 5 - destinations, 0, 4, varied % sources});
      outlines.push_back({count, sources, 1, 0, 0, sources - 1 - varied % sources});
    }
  for (int threads = 1; threads <= 4; ++threads) {
    CAPTURE(threads);
    CHECK(wrong_trials(threads, outlines, subject_of<unsigned>(mix, any_bits)) == 0);
  }
}

TEST_CASE("teams combine: bytes in every alignment, equal and not, every count to 70") {
  std::vector<outline> outlines;
  for (std::size_t count = 0; count <= 70; ++count)
    for (std::size_t shift = 0; shift < 16; ++shift)
      for (std::size_t const spread : {0u, 1u, 16u})
        outlines.push_back({count, 1 + static_cast<int>(count % 3), 1, shift, spread});
  for (int threads = 1; threads <= 4; threads += 3) {
    CAPTURE(threads);
    CHECK(wrong_trials(threads, outlines, subject_of<std::uint8_t>(mix_bytes, any_byte)) == 0);
  }
}

TEST_CASE("teams combine: elements that fill vectors by threes and fives, and some that never do") {
  check_struct<12, std::uint32_t>();
  check_struct<40, std::uint64_t>();
  check_struct<16, std::uint64_t>();
  check_struct<32, std::uint32_t>();
  check_struct<7, std::uint8_t>();
  check_struct<144, std::uint32_t>();
  check_struct<1000, std::uint8_t>();
}

TEST_CASE("teams combine: one contribution is prepared, whichever it is") {
  std::vector<outline> outlines;
  for (int sources = 1; sources <= 5; ++sources)
    for (int prepared = -1; prepared < sources; ++prepared)
      outlines.push_back({133, sources, 1, 0, 0, -1, false, prepared});
  auto const quarters = [](collx::replayable_random& random) {
    return static_cast<float>(random.below(64)) * 0.25f;
  };
  auto const small = [](collx::replayable_random& random) {
    return collx::bfloat16(static_cast<float>(random.below(64)) * 0.25f);
  };
  auto const scaled = collx::premultiplied_sum(0.3f);
  CHECK(wrong_trials(2, outlines, subject_of<float>(scaled, quarters)) == 0);
  CHECK(wrong_trials(2, outlines, subject_of<collx::bfloat16>(scaled, small)) == 0);
}

TEST_CASE("teams combine: a thread on its own is a team") {
  std::vector<int> const a(100, 1), b(100, 2);
  std::vector<int> out(100);
  int const* from[] = {a.data(), b.data()};
  int* to[] = {out.data()};
  collx::device::solo_team alone;
  collx::device::combine(alone, to, 1, from, 2, 100, collx::sum, false, 2);
  CHECK(out == std::vector<int>(100, 3));
}

TEST_CASE("teams copy: any element, count and alignment, into up to three destinations") {
  check_copies<std::uint8_t>();
  check_copies<std::uint16_t>();
  check_copies<float>();
  check_copies<double>();
  check_copies<long double>();
  check_copies<block<12, std::uint32_t>>();
  check_copies<block<40, std::uint64_t>>();
  check_copies<block<1000, std::uint8_t>>();
}

TEST_CASE("teams: what one thread wrote before sync() the others read after it") {
  constexpr std::size_t count = 1000;
  std::vector<unsigned> a(count), b(count), out(count);
  run_team(4, [&](host_team& mine) {
    auto const stride = static_cast<std::size_t>(mine.size());
    for (std::size_t i = static_cast<std::size_t>(mine.rank()); i < count; i += stride)
      a[i] = static_cast<unsigned>(i);
    mine.sync();
    unsigned* middle[] = {b.data()};
    collx::device::copy(mine, middle, 1, a.data(), count);
    mine.sync();
    unsigned const* from[] = {a.data(), b.data()};
    unsigned* to[] = {out.data()};
    collx::device::combine(mine, to, 1, from, 2, count, collx::sum, false, 2);
  });
  for (std::size_t i = 0; i < count; ++i) REQUIRE(out[i] == 2 * i);
}
