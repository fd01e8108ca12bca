// SPDX-License-Identifier: Apache-2.0
// Every schedule in the one list of algorithms is proved: at compile time for 2 .. 4 ranks (most for 6
// in tests/algo), at run time for 1 .. 70 and some larger numbers, for every root where there are few
// (sample.hpp: of some of them).
// compiled: as users do
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/schedule/proves.hpp"
#include "sample.hpp"

namespace {

using namespace collx;

// A sanitizer sees nothing of what is evaluated when compiling, and makes it four times as long.
constexpr rank_t last_proved_small = sample::is_sample ? 3 : 4;

using detail::subject;

// A schedule as the verifier sees it, whichever it is: what is asked of it is compiled once for all.
struct entry {
  char const* algorithm;
  char const* contract;
  bool rooted;
  subject (*of)(shape, rank_t root);
  cost (*documented_cost)(shape);

  [[nodiscard]] bool supports(rank_t size) const { return of(size, 0).supported; }
  [[nodiscard]] rank_t roots(rank_t size) const { return rooted ? size : 1; }
  [[nodiscard]] verdict verify(rank_t size, rank_t root, verify_options options = {}) const {
    return detail::verify(of(size, root), options);
  }
};

std::vector<entry> const& every_schedule() {
  static std::vector<entry> const found = [] {
    std::vector<entry> list;
    for_each_schedule<algo::all, contract::all>([&]<class Algorithm, class Contract, class Schedule>() {
      static_assert(proves_for<Algorithm, Contract, 2, last_proved_small>);
      // What breaks the order of ranks is run with operators that commute, and a scan must serve the others.
      static_assert(keeps_rank_order<Schedule>() || !(std::same_as<Contract, contract::scan> ||
                                                      std::same_as<Contract, contract::exclusive_scan>));
      list.push_back({Algorithm::name, Contract::name, Contract::rooted, &detail::erased<Schedule>::of,
                      &collx::documented_cost<Schedule>});
    });
    return list;
  }();
  return found;
}

std::string describe(entry const& of, verdict const& v) {
  return std::string(of.algorithm) + "/" + of.contract + " with " + std::to_string(v.size) + " ranks, root " +
         std::to_string(v.root) + (v.in_place ? ", in place: " : ": ") + explain(v.what) + " (rank " +
         std::to_string(v.rank) + ", step " + std::to_string(v.step) + ", peer " + std::to_string(v.peer) +
         ", chunk " + std::to_string(v.chunk) + ")";
}

void prove(rank_t first, rank_t last, bool all_roots) {
  for (entry const& each : every_schedule())
    for (rank_t n = first; n <= last; ++n) {
      if (!each.supports(n) || !sample::takes(n)) continue;
      for (rank_t root = 0; root < each.roots(n); root += all_roots ? 1 : n / 3 + 1) {
        verdict const found = each.verify(n, root);
        CHECK_MESSAGE(found.ok(), describe(each, found));
      }
    }
}

cost of_worst_root(entry const& of, rank_t n) {
  cost worst;
  for (rank_t root = 0; root < of.roots(n); ++root) {
    cost const c = of.of(n, root).documented;
    worst.rounds = std::max(worst.rounds, c.rounds);
    worst.messages = std::max(worst.messages, c.messages);
    worst.chunks = std::max(worst.chunks, c.chunks);
  }
  return worst;
}

// The level that it has over all sizes.
reproducibility least_level(entry const& of) {
  reproducibility least = reproducibility::any_size;
  for (rank_t n = 1; n <= 17; ++n)
    for (rank_t root = 0; root < of.roots(n); ++root)
      if (of.supports(n)) least = std::min(least, of.verify(n, root).level);
  return least;
}

}  // namespace

TEST_CASE("every algorithm is proved at compile time for 2 .. 5 ranks") {
  CHECK(every_schedule().size() > 50);  // where the list is made
}

// The walks here, and those over real buffers, pass over what an algorithm does not serve. Which sizes it
// serves is a column of docs/algorithms.md, so that one that serves fewer than before is noticed there.
TEST_CASE("every algorithm serves some number of ranks that is walked") {
  for (entry const& each : every_schedule()) {
    CAPTURE(std::string(each.algorithm));
    CAPTURE(std::string(each.contract));
    rank_t served = 0;
    for (rank_t n = 2; n <= 17; ++n) served += each.supports(n) ? 1 : 0;
    CHECK(served > 0);
  }
}

TEST_CASE("every algorithm is proved for 1 .. 33 ranks and every root") { prove(1, 33, true); }

TEST_CASE("every algorithm is proved for 34 .. 70 ranks") { prove(34, 70, false); }

TEST_CASE("every algorithm is proved for 96, 127, 128 and 256 ranks") {
  for (rank_t const n : {96, 127, 128, 256}) prove(n, n, false);
}

TEST_CASE("the documented cost without a root is that of the worst root") {
  for (entry const& each : every_schedule())
    for (rank_t n = 1; n <= 33; ++n) {
      if (!each.supports(n)) continue;
      CAPTURE(each.algorithm);
      CAPTURE(each.contract);
      CAPTURE(n);
      CHECK(each.documented_cost(n) == of_worst_root(each, n));
    }
}

// A level is not claimed in vain, and none is kept back: a schedule has, over all sizes, just what it says.
TEST_CASE("every algorithm has the level of reproducibility that it states") {
  for (entry const& each : every_schedule()) {
    CAPTURE(each.algorithm);
    CAPTURE(each.contract);
    CHECK(each.of(1, 0).level == least_level(each));
  }
}

TEST_CASE("the declared depth is enough, and the ring needs two") {
  for (entry const& each : every_schedule())
    for (rank_t const n : {2, 3, 4, 7, 8, 16}) {
      if (!each.supports(n)) continue;
      CAPTURE(each.algorithm);
      CAPTURE(each.contract);
      subject const asked = each.of(n, 0);
      std::int32_t const least = detail::minimal_depth(asked);
      CHECK(least >= 1);
      CHECK(least <= asked.depth);
    }
  for (rank_t const n : {2, 3, 4, 8, 33}) {
    // A rank in the middle of a ring step holds a message in each hand.
    CHECK(minimal_depth<algo::ring::all_reduce>(n) == 2);
    verdict const stuck = verify<algo::ring::all_reduce>(n, 0, {.depth = 1});
    CHECK(stuck.what == fault::deadlock);
    CHECK(stuck.peer == 1);
  }
}

// What states that it works on blocks with counts of their own does, some of them empty or none.
TEST_CASE("verify: algorithms that say so work on uneven blocks") {
  int proved = 0;
  for (entry const& each : every_schedule()) {
    if (each.of(1, 0).counts == known_counts::equal) continue;
    for (rank_t n = 1; n <= 20; ++n)
      for (rank_t root = 0; root < each.roots(n); root += n / 4 + 1)
        for (std::uint32_t seed = 1; seed <= 4; ++seed) {
          if (!each.supports(n)) continue;
          verdict const found = each.verify(n, root, {.uneven = seed});
          CHECK_MESSAGE(found.ok(), describe(each, found));
          ++proved;
        }
  }
  CHECK(proved > 500);
}
