// SPDX-License-Identifier: Apache-2.0
// Changes single fields of single steps of right schedules and expects the verifier to refuse the
// result: all changes for few ranks, a sample of them (from a seed) for more.
// sanitizers: no, forty seconds, for a verifier that verify_algorithms.cpp runs under them
#include <map>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "collx/algo/all.hpp"
#include "collx/schedule/type_list.hpp"
#include "schedule/mutate.hpp"

namespace {

using namespace collx;

struct tally {
  int tried = 0;
  int survived = 0;
  std::map<std::string, std::string> examples;  // of survivors, per kind of change
};

// Tries one change; schedules that mean the same are not counted.
template <class Algorithm, class Contract, class Schedule>
void try_one(problem p, std::int32_t step, int change, tally& sum) {
  primitive const right = Schedule::step(p, step);
  primitive changed = right;
  mutate::changes[change].apply(changed);
  if (mutate::effects<Schedule>(changed, p) == mutate::effects<Schedule>(right, p)) return;
  mutate::active = {p.rank, step, change};
  bool const passed = verify<mutate::mutant<Schedule>>(p.size, p.root).ok();
  mutate::active = {};
  ++sum.tried;
  if (!passed) return;
  ++sum.survived;
  sum.examples[mutate::changes[change].name] = std::string(Algorithm::name) + "/" + Contract::name +
                                               " with " + std::to_string(p.size) + " ranks, rank " +
                                               std::to_string(p.rank) + ", step " + std::to_string(step);
}

struct try_everything {
  rank_t size;
  tally& sum;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() const {
    if (!collx::supports<Schedule>(size)) return;
    rank_t const root = Contract::rooted ? size - 1 : 0;
    for (rank_t r = 0; r < size; ++r) {
      problem const p{r, size, root};
      for (std::int32_t s = 0; s < Schedule::step_count(p); ++s)
        for (int c = 0; c < mutate::change_count; ++c) try_one<Algorithm, Contract, Schedule>(p, s, c, sum);
    }
  }
};

struct try_sample {
  rank_t size;
  int count;
  std::mt19937& random;
  tally& sum;

  template <class Algorithm, class Contract, class Schedule>
  void operator()() const {
    if (!collx::supports<Schedule>(size)) return;
    auto const below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    for (int i = 0; i < count; ++i) {
      problem const p{below(size), size, Contract::rooted ? below(size) : 0};
      if (Schedule::step_count(p) == 0) continue;
      try_one<Algorithm, Contract, Schedule>(p, below(Schedule::step_count(p)), below(mutate::change_count),
                                             sum);
    }
  }
};

// The changes that may leave a schedule right: a store that nothing depends on is added or dropped,
// a result is pushed that nobody uses yet, or a chunk is read where an equal one lies.
bool may_be_right(std::string const& change) {
  for (char const* const kind :
       {"store flipped", "push set", "operand in input", "operand in output", "operand and target exchanged"})
    if (change == kind) return true;
  return false;
}

void judge(tally const& sum) {
  MESSAGE(sum.tried << " mutants, " << sum.survived << " of them still right");
  CHECK(sum.survived * 100 < sum.tried);
  for (auto const& [change, example] : sum.examples) {
    CAPTURE(example);
    CHECK_MESSAGE(may_be_right(change), change);
  }
}

}  // namespace

TEST_CASE("verify: every single change to a schedule for 2 .. 5 ranks is refused, or is harmless") {
  tally sum;
  for (rank_t const n : {2, 3, 4, 5}) for_each_schedule<algo::all, contract::all>(try_everything{n, sum});
  CHECK(sum.tried > 10'000);
  judge(sum);
}

TEST_CASE("verify: a sample of changes to schedules for more ranks is refused, or is harmless") {
  tally sum;
  std::mt19937 random(20240229);
  for (rank_t const n : {7, 8, 13, 16})
    for_each_schedule<algo::all, contract::all>(try_sample{n, 200, random, sum});
  judge(sum);
}
