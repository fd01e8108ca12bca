// SPDX-License-Identifier: Apache-2.0
// How bytes are cut: the chunks of all fragments cover every element of the vector once, in order,
// the same on every rank, and what a fragment stages fits where it must.
// sanitizers: no, half a minute, for arithmetic that the matrices do under them
#include <vector>

#include <doctest/doctest.h>

#include "collective/cases.hpp"
#include "collx/algo/all.hpp"
#include "collx/collective/call.hpp"
#include "collx/exec/host_executor.hpp"

namespace {

using collx::rank_t;
using collx::exec::extent;
using collx::exec::geometry;

// One cut: everything a geometry depends on.
struct cut {
  std::size_t count, element_bytes;
  std::int32_t parts;
  std::int64_t most_staged;
  std::size_t staging_bytes;

  bool alike = true;

  geometry make() const { return {count, element_bytes, parts, most_staged, staging_bytes, alike}; }
};

void check_covers_once(cut const& how) {
  geometry const g = how.make();
  std::vector<int> covered(how.count, 0);
  REQUIRE(g.fragments() >= 1);
  for (std::size_t f = 0; f < g.fragments(); ++f)
    for (std::int32_t i = 0; i < how.parts; ++i) {
      extent const part = g.part(f, i);
      REQUIRE(part.begin + part.count <= how.count);
      for (std::size_t e = part.begin; e < part.begin + part.count; ++e) ++covered[e];
    }
  for (int const times : covered) REQUIRE(times == 1);
}

// Within a fragment parts follow each other without gaps.
void check_order(cut const& how) {
  geometry const g = how.make();
  for (std::size_t f = 0; f < g.fragments(); ++f)
    for (std::int32_t i = 0; i + 1 < how.parts; ++i)
      REQUIRE(g.part(f, i).begin + g.part(f, i).count == g.part(f, i + 1).begin);
}

// Scratch holds the chunks of three blocks of a fragment apart.
void check_scratch(cut const& how) {
  geometry const g = how.make();
  for (std::size_t f = 0; f < g.fragments(); ++f)
    for (std::int32_t c = 0; c < 3 * how.parts; ++c) {
      extent const mine = g.scratch_chunk(f, c);
      REQUIRE(mine.count == g.part(f, c % how.parts).count);
      REQUIRE(mine.begin + mine.count <= g.scratch_chunk(f, c + 1).begin);
    }
}

// A block with a count of its own is cut in the same fragments, as far as it reaches.
void check_blocks(cut const& how) {
  geometry const g = how.make();
  for (std::size_t const of : {std::size_t{0}, how.count / 3, how.count}) {
    std::size_t next = 0;
    for (std::size_t f = 0; f < g.fragments(); ++f) {
      extent const e = g.part_of_block(f, of);
      REQUIRE(e.begin == next);
      REQUIRE(e.count <= g.part_of_block(f, how.count).count);
      next += e.count;
    }
    REQUIRE(next == of);
  }
}

void check(cut const& how) {
  CAPTURE(how.count);
  CAPTURE(how.element_bytes);
  CAPTURE(how.parts);
  CAPTURE(how.most_staged);
  check_covers_once(how);
  check_order(how);
  check_scratch(how);
  check_blocks(how);
}

// Bytes that the busiest rank stages in the largest fragment, each payload rounded up to a line.
template <class Schedule>
std::size_t staged_bytes(cut const& how) {
  geometry const g = how.make();
  std::size_t largest = 0;
  for (std::int32_t i = 0; i < how.parts; ++i) largest = std::max(largest, g.part(0, i).count);
  return (largest * how.element_bytes + 63) / 64 * 64 * static_cast<std::size_t>(how.most_staged);
}

struct fits_staging {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    for (rank_t size = 1; size <= 33; ++size) {
      if (!collx::supports<Schedule>(size)) continue;
      for (std::size_t const element_bytes : {1u, 3u, 4u, 8u, 24u})
        for (std::size_t const count : {1u, 100u, 5000u, 100'000u}) {
          cut const how{count, element_bytes,
                        collx::chunk_count<Schedule>(size) / Contract::blocks(size),
                        collx::exec::largest_staged<Schedule>(size), cases::staging_bytes};
          CAPTURE(Contract::name);
          CAPTURE(Algorithm::name);
          CAPTURE(size);
          CAPTURE(element_bytes);
          CAPTURE(count);
          REQUIRE(staged_bytes<Schedule>(how) <= cases::staging_bytes / 2);
        }
    }
  }
};

// Where can_run() does not ask.
struct has_room_unasked {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    namespace detail = collx::detail;
    for (rank_t const size : {2, 3, 7, 8, 16, 33, 63, 64}) {
      if (!collx::supports<Schedule>(size)) continue;
      if (collx::chunk_count<Schedule>(size) > detail::roomy_chunks) continue;
      CAPTURE(Contract::name);
      CAPTURE(Algorithm::name);
      CAPTURE(size);
      auto const staged = static_cast<std::size_t>(collx::exec::largest_staged<Schedule>(size));
      REQUIRE(staged * detail::roomy_element_bytes <= detail::roomy_staging_bytes / 2);
    }
  }
};

struct same_on_every_rank {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    for (rank_t const size : {2, 3, 5, 8}) {
      if (!collx::supports<Schedule>(size)) continue;
      for (std::size_t const count : {std::size_t{1}, std::size_t{61}, cases::large_count<Contract>(size)})
        for (rank_t rank = 0; rank < size; ++rank)
          compare<Contract, Schedule>({rank, size, size - 1}, {0, size, size - 1}, count);
    }
  }

  // What `mine` believes about another rank's memory is what that rank believes itself.
  template <class Contract, class Schedule>
  static void compare(collx::problem mine, collx::problem theirs, std::size_t count) {
    // Never read: only where things lie is asked.
    std::vector<int> memory(1);
    auto const map = [&](collx::problem p) {
      auto const user = collx::exec::even_buffers<Contract>(p, memory.data(), memory.data(), true);
      return collx::exec::map_memory<Schedule>(p, [&] { return user; }, nullptr, count, sizeof(int),
                                               cases::staging_bytes);
    };
    collx::exec::memory_map const here = map(mine), there = map(theirs);
    REQUIRE(here.fragments() == there.fragments());
    std::int32_t const parts = collx::chunk_count<Schedule>(mine.size) / Contract::blocks(mine.size);
    collx::block_window const window = Contract::output(theirs);
    for (std::size_t f = 0; f < here.fragments(); ++f)
      for (std::int32_t i = 0; i < window.count * parts; ++i) {
        std::int32_t const c = (window.first + i / parts * window.stride) * parts + i % parts;
        collx::region const chunk{collx::place::output, c, 1};
        collx::exec::run const own = there.find(chunk, 0, f);
        REQUIRE(own.whole);
        auto const begin = reinterpret_cast<std::byte*>(memory.data());
        REQUIRE(own.data == begin + here.offset_at(theirs.rank, chunk, f));
      }
  }
};

}  // namespace

TEST_CASE("geometry: parts cover every element once and in order, exhaustively for small blocks") {
  for (std::int32_t parts = 1; parts <= 9; ++parts)
    for (std::int32_t const staged : {parts, 3 * parts})
      for (std::size_t count = 0; count <= 40; ++count)
        for (std::size_t const element_bytes : {1u, 8u, 12u})
          // Staging for one element per chunk, for a few, and for everything.
          for (std::size_t const staging : {512u, 1024u, 4096u})
            for (bool const alike : {true, false})
              check({count, element_bytes, parts, staged, staging, alike});
}

TEST_CASE("geometry: the same for larger blocks, where parts begin on cache lines") {
  for (std::int32_t const parts : {1, 2, 3, 8, 33})
    for (std::size_t const count : {1000u, 4096u, 10007u})
      for (std::size_t const element_bytes : {1u, 3u, 4u, 16u})
        for (std::size_t const staging : {cases::staging_bytes, std::size_t{1} << 20})
          for (bool const alike : {true, false})
            check({count, element_bytes, parts, 2 * parts, staging, alike});
}

TEST_CASE("geometry: large parts begin on whole cache lines of the vector") {
  geometry const g = cut{10007, 4, 8, 8, 1 << 20}.make();
  for (std::int32_t i = 0; i < 8; ++i) CHECK(g.part(0, i).begin * 4 % 64 == 0);
}

TEST_CASE("geometry: fragments are of one length, but for the last, which is hardly shorter") {
  for (std::size_t const count : {131'073u, 131'100u, 140'000u, 262'144u, 1'000'000u}) {
    CAPTURE(count);
    geometry const g = cut{count, 4, 2, 2, 1 << 20}.make();
    REQUIRE(g.fragments() > 1);
    std::size_t const first = g.part_of_block(0, count).count;
    std::size_t const last = g.part_of_block(g.fragments() - 1, count).count;
    CHECK(last <= first);
    CHECK(last + 32 * g.fragments() >= first);  // as many lines of 16 elements for both parts
  }
}

TEST_CASE("geometry: what fills half of the staging memory to the byte is one fragment, twice as much two") {
  for (std::int32_t const parts : {1, 2, 8})
    for (std::size_t const element_bytes : {1u, 4u, 16u})
      for (std::size_t const halves : {1u, 2u, 8u}) {
        std::size_t const count = halves * (1 << 19) / element_bytes;
        CHECK(cut{count, element_bytes, parts, parts, 1 << 20}.make().fragments() == halves);
        CHECK(cut{count + 1, element_bytes, parts, parts, 1 << 20}.make().fragments() == halves + 1);
      }
}

TEST_CASE("geometry: where ranks know different counts, the length of fragments depends on none") {
  for (std::size_t const count : {135'000u, 140'000u, 1'000'000u}) {
    geometry const g = cut{count, 4, 2, 2, 1 << 20, false}.make();
    CHECK(g.part(1, 0).begin == cut{300'000, 4, 2, 2, 1 << 20, false}.make().part(1, 0).begin);
  }
}

TEST_CASE("geometry: counts beyond 2^31 elements and 2^32 bytes") {
  std::size_t const count = (std::size_t{1} << 33) + 5;
  geometry const g = cut{count, 8, 2, 2, 1 << 20}.make();
  extent const last = g.part(g.fragments() - 1, 1), before = g.part(g.fragments() - 1, 0);
  CHECK(std::max(last.begin + last.count, before.begin + before.count) == count);
  CHECK(g.part(0, 0).begin == 0);
}

TEST_CASE("geometry: what a fragment stages fits half of the staging memory, for every schedule") {
  collx::for_each_schedule<collx::algo::all, collx::contract::all>(fits_staging{});
}

TEST_CASE("geometry: small elements have room by default, so that calls do not ask") {
  collx::for_each_schedule<collx::algo::all, collx::contract::all>(has_room_unasked{});
}

TEST_CASE("geometry: every rank knows where the chunks of the others lie") {
  collx::for_each_schedule<collx::algo::all, collx::contract::all>(same_on_every_rank{});
}
