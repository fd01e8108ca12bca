// SPDX-License-Identifier: Apache-2.0
// What collx_tune measures, and what came out: a cell is one collective of one size in one setting, with
// the times of every algorithm that offers it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "options.hpp"

namespace tuning {

// Where ranks and buffers are.
struct setting {
  std::string transport, memory;
  int ranks = 0;

  friend auto operator<=>(setting const&, setting const&) = default;
};

// "shm, private memory, 2 ranks"
[[nodiscard]] std::string words(setting const& s);

struct cell_key {
  setting where;
  std::string collective;
  std::int64_t block_bytes = 0;  // as the library's choice counts bytes (tune/question.hpp)

  friend auto operator<=>(cell_key const&, cell_key const&) = default;
};

// One measurement that is asked for, in the order in which they are made.
struct item {
  cell_key cell;
  std::string algorithm;
  int round = 0;

  friend auto operator<=>(item const&, item const&) = default;
};

// Microseconds of each algorithm of a cell (state.hpp says how they come from those of its rounds).
using times = std::map<std::string, double>;
using results = std::map<cell_key, times>;

// Everything that `o` asks for in one setting and round. In a round the algorithms of a cell follow each
// other, so that what disturbs the machine for a while disturbs all of them; every round begins with another.
[[nodiscard]] std::vector<item> items_of(options const& o, setting const& where, int round);

// Of those, the algorithms that may be the best of their cell, after the rounds before this one: where two or
// more are so close that the noise of a few rounds decides between them.
[[nodiscard]] std::vector<item> close_ones(std::vector<item> const& items, results const& so_far);

[[nodiscard]] std::vector<setting> settings_of(options const& o);

// "8 B", "32 KiB", "1.5 MiB"
[[nodiscard]] std::string human(std::int64_t bytes);

}  // namespace tuning
