// SPDX-License-Identifier: Apache-2.0
// How bytes are cut: the chunks of all fragments cover every element of the vector once, in order,
// the same on every rank, and what a fragment stages fits where it must.
#include <vector>

#include <doctest/doctest.h>

#include "collective/cases.hpp"
#include "collx/algo/all.hpp"
#include "collx/exec/host_executor.hpp"

namespace {

using collx::rank_t;
using collx::exec::extent;
using collx::exec::geometry;

// One cut: everything a geometry depends on.
struct cut {
  std::size_t count, element_bytes;
  std::int32_t chunk_count;
  rank_t size;
  bool sharded;
  std::int64_t most_staged;
  std::size_t staging_bytes;

  geometry make() const {
    return {count, element_bytes, chunk_count, size, sharded, most_staged, staging_bytes};
  }
  std::size_t elements() const { return sharded ? count * static_cast<std::size_t>(size) : count; }
};

void check_covers_once(cut const& how) {
  geometry const g = how.make();
  std::vector<int> covered(how.elements(), 0);
  REQUIRE(g.fragments() >= 1);
  for (std::size_t f = 0; f < g.fragments(); ++f)
    for (std::int32_t c = 0; c < how.chunk_count; ++c) {
      extent const part = g.chunk(f, c, 0);
      REQUIRE(part.begin + part.count <= how.elements());
      for (std::size_t i = part.begin; i < part.begin + part.count; ++i) ++covered[i];
    }
  for (int const times : covered) REQUIRE(times == 1);
}

// Within a fragment chunks follow each other; fragments do, within each block.
void check_order(cut const& how) {
  geometry const g = how.make();
  for (std::size_t f = 0; f < g.fragments(); ++f)
    for (std::int32_t c = 0; c + 1 < how.chunk_count; ++c) {
      extent const part = g.chunk(f, c, 0), next = g.chunk(f, c + 1, 0);
      REQUIRE(part.begin + part.count <= next.begin);
      if (g.contiguous()) REQUIRE(part.begin + part.count == next.begin);
    }
}

void check_scratch(cut const& how) {
  geometry const g = how.make();
  for (std::size_t f = 0; f < g.fragments(); ++f)
    for (std::int32_t c = 0; c < how.chunk_count; ++c) {
      extent const mine = g.scratch_chunk(f, c);
      REQUIRE(mine.count == g.chunk(f, c, 0).count);
      if (c + 1 < how.chunk_count) REQUIRE(mine.begin + mine.count <= g.scratch_chunk(f, c + 1).begin);
    }
}

// A window only moves where a chunk lies, by whole blocks.
void check_windows(cut const& how) {
  geometry const g = how.make();
  if (!how.sharded) return;
  std::int32_t const per_block = how.chunk_count / how.size;
  for (rank_t rank = 0; rank < how.size; ++rank)
    for (std::size_t f = 0; f < g.fragments(); ++f)
      for (std::int32_t c = rank * per_block; c < (rank + 1) * per_block; ++c) {
        extent const whole = g.chunk(f, c, 0), own = g.chunk(f, c, rank * per_block);
        REQUIRE(own.count == whole.count);
        REQUIRE(own.begin + static_cast<std::size_t>(rank) * how.count == whole.begin);
        REQUIRE(own.begin + own.count <= how.count);
      }
}

void check(cut const& how) {
  CAPTURE(how.count);
  CAPTURE(how.element_bytes);
  CAPTURE(how.chunk_count);
  CAPTURE(how.size);
  CAPTURE(how.sharded);
  CAPTURE(how.most_staged);
  check_covers_once(how);
  check_order(how);
  check_scratch(how);
  check_windows(how);
}

// Bytes that the busiest rank stages in the largest fragment, each payload rounded up to a line.
template <class Schedule>
std::size_t staged_bytes(cut const& how) {
  geometry const g = how.make();
  std::size_t largest = 0;
  for (std::int32_t c = 0; c < how.chunk_count; ++c) largest = std::max(largest, g.chunk(0, c, 0).count);
  return (largest * how.element_bytes + 63) / 64 * 64 * static_cast<std::size_t>(how.most_staged);
}

struct fits_staging {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    for (rank_t size = 1; size <= 33; ++size) {
      if (!Schedule::supports(size)) continue;
      for (std::size_t const element_bytes : {1u, 3u, 4u, 8u, 24u})
        for (std::size_t const count : {1u, 100u, 5000u, 100'000u}) {
          cut const how{count,
                        element_bytes,
                        Schedule::chunk_count(size),
                        size,
                        Contract::sharded,
                        collx::exec::largest_staged<Schedule>(size),
                        cases::staging_bytes};
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

struct same_on_every_rank {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    for (rank_t const size : {2, 3, 5, 8}) {
      if (!Schedule::supports(size)) continue;
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
      return collx::exec::map_memory<Schedule>(p, memory.data(), memory.data(), nullptr, count,
                                               cases::staging_bytes);
    };
    collx::exec::memory_map const here = map(mine), there = map(theirs);
    REQUIRE(here.fragments() == there.fragments());
    std::int32_t const chunks = Schedule::chunk_count(mine.size);
    collx::chunk_window const window = Contract::output(theirs, chunks);
    for (std::size_t f = 0; f < here.fragments(); ++f)
      for (std::int32_t c = window.first; c < window.first + window.count; ++c) {
        collx::region const chunk{collx::place::output, c, 1};
        collx::exec::run const own = there.find(chunk, 0, f);
        REQUIRE(own.pieces == 1);
        auto const begin = reinterpret_cast<std::byte*>(memory.data());
        REQUIRE(own.data == begin + here.offset_at(theirs.rank, chunk, f));
      }
  }
};

}  // namespace

TEST_CASE("geometry: chunks cover every element once and in order, exhaustively for small vectors") {
  for (bool const sharded : {false, true})
    for (rank_t size = 1; size <= 5; ++size)
      for (std::int32_t per_rank = 1; per_rank <= 3; ++per_rank)
        for (std::size_t count = 0; count <= 40; ++count)
          for (std::size_t const element_bytes : {1u, 8u, 12u})
            // Staging for one element per chunk, for a few, and for everything.
            for (std::size_t const staging : {512u, 1024u, 4096u})
              check({count, element_bytes, size * per_rank, size, sharded, size * per_rank, staging});
}

TEST_CASE("geometry: the same for larger vectors, where parts begin on cache lines") {
  for (bool const sharded : {false, true})
    for (rank_t const size : {1, 2, 3, 8, 33})
      for (std::size_t const count : {1000u, 4096u, 10007u})
        for (std::size_t const element_bytes : {1u, 3u, 4u, 16u})
          for (std::size_t const staging : {cases::staging_bytes, std::size_t{1} << 20})
            check({count, element_bytes, size, size, sharded, 2 * size, staging});
}

TEST_CASE("geometry: large parts begin on whole cache lines of the vector") {
  geometry const g = cut{10007, 4, 8, 8, false, 8, 1 << 20}.make();
  for (std::int32_t c = 0; c < 8; ++c) CHECK(g.chunk(0, c, 0).begin * 4 % 64 == 0);
}

TEST_CASE("geometry: counts beyond 2^31 elements and 2^32 bytes") {
  std::size_t const count = (std::size_t{1} << 33) + 5;
  geometry const g = cut{count, 8, 2, 2, false, 2, 1 << 20}.make();
  extent const last = g.chunk(g.fragments() - 1, 1, 0), before = g.chunk(g.fragments() - 1, 0, 0);
  CHECK(std::max(last.begin + last.count, before.begin + before.count) == count);
  CHECK(g.chunk(0, 0, 0).begin == 0);
}

TEST_CASE("geometry: what a fragment stages fits half of the staging memory, for every schedule") {
  collx::for_each_schedule<collx::algo::all, collx::contract::all>(fits_staging{});
}

TEST_CASE("geometry: every rank knows where the chunks of the others lie") {
  collx::for_each_schedule<collx::algo::all, collx::contract::all>(same_on_every_rank{});
}
