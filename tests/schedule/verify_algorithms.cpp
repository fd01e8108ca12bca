// SPDX-License-Identifier: Apache-2.0
// Every schedule in the one list of algorithms is proved: at compile time for 2 .. 5 ranks (most for 8
// in tests/algo), at run time for 1 .. 70 and some larger numbers, for every root where there are few
// (sample.hpp: of some of them).
// compiled: as users do
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/schedule/proves.hpp"
#include "sample.hpp"

namespace {

using namespace collx;

template <class Algorithm, class Contract>
std::string describe(verdict const& v) {
  return std::string(Algorithm::name) + "/" + Contract::name + " with " + std::to_string(v.size) +
         " ranks, root " + std::to_string(v.root) + (v.in_place ? ", in place: " : ": ") + explain(v.what) +
         " (rank " + std::to_string(v.rank) + ", step " + std::to_string(v.step) + ", peer " +
         std::to_string(v.peer) + ", chunk " + std::to_string(v.chunk) + ")";
}

// A sanitizer sees nothing of what is evaluated when compiling, and makes it four times as long.
struct prove_small {
  static constexpr rank_t last = sample::is_sample ? 4 : 5;

  template <class Algorithm, class Contract, class Schedule>
  constexpr void operator()() const {
    static_assert(proves_for<Algorithm, Contract, 2, last>);
  }
};

struct prove_large {
  rank_t first = 1, last = 1;
  bool all_roots = false;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() const {
    for (rank_t n = first; n <= last; ++n) {
      if (!collx::supports<Schedule>(n) || !sample::takes(n)) continue;
      rank_t const stride = all_roots ? 1 : n / 3 + 1;
      for (rank_t root = 0; root < (Contract::rooted ? n : 1); root += stride) {
        verdict const found = verify<Schedule>(n, root);
        CHECK_MESSAGE(found.ok(), describe<Algorithm, Contract>(found));
      }
    }
  }
};

struct cost_of_worst_root {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() const {
    for (rank_t n = 1; n <= 33; ++n) {
      if (!collx::supports<Schedule>(n)) continue;
      cost worst;
      for (rank_t root = 0; root < (Contract::rooted ? n : 1); ++root) {
        cost const c = documented_cost<Schedule>(n, root);
        if (worst.rounds < c.rounds) worst.rounds = c.rounds;
        if (worst.messages < c.messages) worst.messages = c.messages;
        if (worst.chunks < c.chunks) worst.chunks = c.chunks;
      }
      CAPTURE(std::string(Algorithm::name));
      CAPTURE(std::string(Contract::name));
      CAPTURE(n);
      CHECK(collx::documented_cost<Schedule>(n) == worst);
    }
  }
};

// What states that it works on blocks with counts of their own does, some of them empty or none.
struct works_on_uneven_blocks {
  int proved = 0;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() {
    if (counts_for<Schedule>() == known_counts::equal) return;
    for (rank_t n = 1; n <= 20; ++n)
      for (rank_t root = 0; root < (Contract::rooted ? n : 1); root += n / 4 + 1)
        for (std::uint32_t seed = 1; seed <= 4; ++seed) {
          if (!collx::supports<Schedule>(n)) continue;
          verdict const found = verify<Schedule>(n, root, {.uneven = seed});
          CHECK_MESSAGE(found.ok(), describe<Algorithm, Contract>(found));
          ++proved;
        }
  }
};

// A level is not claimed in vain, and none is kept back: a schedule has, over all sizes, just what it says.
struct states_its_level {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() const {
    reproducibility least = reproducibility::any_size;
    for (rank_t n = 1; n <= 17; ++n)
      for (rank_t root = 0; root < (Contract::rooted ? n : 1); ++root)
        if (collx::supports<Schedule>(n)) least = std::min(least, verify<Schedule>(n, root).level);
    CAPTURE(std::string(Algorithm::name));
    CAPTURE(std::string(Contract::name));
    CHECK(level_of<Schedule>() == least);
  }
};

struct depth_suffices {
  template <class Algorithm, class Contract, class Schedule>
  void operator()() const {
    for (rank_t const n : {2, 3, 4, 7, 8, 16}) {
      if (!collx::supports<Schedule>(n)) continue;
      std::int32_t const least = minimal_depth<Schedule>(n);
      CHECK(least >= 1);
      CHECK(least <= depth<Schedule>(n));
    }
  }
};

}  // namespace

TEST_CASE("every algorithm is proved at compile time for 2 .. 5 ranks") {
  for_each_schedule<algo::all, contract::all>(prove_small{});
}

TEST_CASE("every algorithm is proved for 1 .. 33 ranks and every root") {
  for_each_schedule<algo::all, contract::all>(prove_large{1, 33, true});
}

TEST_CASE("every algorithm is proved for 34 .. 70 ranks") {
  for_each_schedule<algo::all, contract::all>(prove_large{34, 70});
}

TEST_CASE("every algorithm is proved for 96, 127, 128 and 256 ranks") {
  for (rank_t const n : {96, 127, 128, 256}) for_each_schedule<algo::all, contract::all>(prove_large{n, n});
}

TEST_CASE("the documented cost without a root is that of the worst root") {
  for_each_schedule<algo::all, contract::all>(cost_of_worst_root{});
}

TEST_CASE("every algorithm has the level of reproducibility that it states") {
  for_each_schedule<algo::all, contract::all>(states_its_level{});
}

TEST_CASE("the declared depth is enough, and the ring needs two") {
  for_each_schedule<algo::all, contract::all>(depth_suffices{});
  for (rank_t const n : {2, 3, 4, 8, 33}) {
    // A rank in the middle of a ring step holds a message in each hand.
    CHECK(minimal_depth<algo::ring::all_reduce>(n) == 2);
    verdict const stuck = verify<algo::ring::all_reduce>(n, 0, {.depth = 1});
    CHECK(stuck.what == fault::deadlock);
    CHECK(stuck.peer == 1);
  }
}

TEST_CASE("verify: algorithms that say so work on uneven blocks") {
  works_on_uneven_blocks all;
  for_each_schedule<algo::all, contract::all>(all);
  CHECK(all.proved > 500);
}
