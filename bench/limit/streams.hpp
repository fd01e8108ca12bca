// SPDX-License-Identifier: Apache-2.0
// The least memory that a collective must move, per rank, as streams of equal length: one block of the
// vector, bytes / ranks. docs/benchmarks.md derives the table.
#pragma once

#include <stdexcept>
#include <string_view>

namespace limit {

struct streams {
  int reads = 0, writes = 0;
  bool sums = false;  // every write is the sum of all reads; else write i is read i, or the only read
};

// What one of `ranks` does when the work is shared out evenly and every rank reaches all memory: each
// input element is read once by somebody, each output element written once by somebody.
[[nodiscard]] inline streams streams_of(std::string_view collective, int ranks, bool in_place) {
  if (collective == "all_reduce") return {ranks, ranks, true};
  if (collective == "reduce_scatter" || collective == "reduce") return {ranks, 1, true};
  int const others = in_place ? ranks - 1 : ranks;  // in place a block is where it belongs already
  if (collective == "all_gather" || collective == "broadcast") return {1, others, false};
  if (collective == "all_to_all") return {others, others, false};
  throw std::invalid_argument(
      "a limit is known for all_reduce, reduce_scatter, all_gather, all_to_all, "
      "broadcast and reduce");
}

}  // namespace limit
