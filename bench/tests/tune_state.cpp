// SPDX-License-Identifier: Apache-2.0
// What collx_tune makes of the rounds: one in which all ranks were slow says nothing about those that were
// measured in it, and only what is close to the best is measured again.
#include "../tune/state.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <unistd.h>

namespace {

using tuning::cell_key;
using tuning::item;
using tuning::state;

cell_key const cell{{"shm", "private", 4}, "all_reduce", 64};

struct file {
  std::string path =
      (std::filesystem::temp_directory_path() / ("collx_tune_state_" + std::to_string(getpid()) + ".jsonl"))
          .string();
  file() = default;
  file(file const&) = delete;
  file& operator=(file const&) = delete;
  ~file() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("times are relative to those of their round") {
  file const where;
  state known(where.path, false);
  // `ring` is 10 % faster than `chain` in every round; what rounds take differs five-fold.
  double const level[] = {1, 5, 2, 5, 1};
  for (int round = 0; round < 5; ++round) {
    known.add({cell, "ring", round}, 9 * level[round]);
    known.add({cell, "chain", round}, 10 * level[round]);
  }
  for (int round : {1, 3}) known.add({cell, "pat", round}, 11 * level[round]);
  tuning::times const of = known.summary().at(cell);
  CHECK(of.at("ring") == doctest::Approx(18));  // the round in the middle took twice what the first one did
  CHECK(of.at("chain") == doctest::Approx(20));
  CHECK(of.at("pat") == doctest::Approx(22));  // though all of its rounds were slow ones
  CHECK(known.summary(1).at(cell).at("ring") == doctest::Approx(9));
  CHECK(known.summary(1).at(cell).count("pat") == 0);
  state const again(where.path, true);
  CHECK(again.summary() == known.summary());
}

TEST_CASE("a single disturbed turn changes nothing") {
  file const where;
  state known(where.path, false);
  for (int round = 0; round < 5; ++round) {
    known.add({cell, "ring", round}, round == 2 ? 90 : 9);
    known.add({cell, "chain", round}, 10);
  }
  tuning::times const of = known.summary().at(cell);
  CHECK(of.at("ring") / of.at("chain") == doctest::Approx(0.9));
}

TEST_CASE("only what is close to the best is measured again") {
  std::vector<item> const items{{cell, "ring", 5}, {cell, "chain", 5}, {cell, "pat", 5}, {cell, "swing", 5}};
  auto const again = [&](tuning::times const& of) { return tuning::close_ones(items, {{cell, of}}); };
  std::vector<item> const both{items[0], items[2]};
  CHECK(again({{"ring", 1.2}, {"chain", 1.3}, {"pat", 1.0}, {"swing", 9.0}}) == both);
  CHECK(again({{"ring", 1.3}, {"chain", 1.3}, {"pat", 1.0}, {"swing", 9.0}}).empty());  // no rivals
  CHECK(tuning::close_ones(items, {}).empty());
}

TEST_CASE("a line that a killed run did not finish is measured again, and spoils no other") {
  file const where;
  {
    state known(where.path, false);
    known.add({cell, "ring", 0}, 9);
  }
  std::ofstream(where.path, std::ios::app) << "{\"transport\": \"sh";
  state known(where.path, true);
  known.add({cell, "chain", 0}, 10);
  state const again(where.path, true);
  CHECK(again.summary().at(cell) == known.summary().at(cell));
  CHECK(again.summary().at(cell).at("chain") == doctest::Approx(10));
}

TEST_CASE("where nothing can be written a run ends, and says why") {
  CHECK_THROWS_WITH(state("/dev/full", false).add({cell, "ring", 0}, 9),
                    doctest::Contains("is the disk full?"));
}
