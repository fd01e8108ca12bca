// SPDX-License-Identifier: Apache-2.0
// Blocks with counts of their own, as a kernel is told of them: by value, since what the host's memory holds
// is out of its reach, and to copy tables to the GPU before each call would cost more than most calls.
#pragma once

#include "collx/exec/chunk_map.hpp"
#include "collx/exec/lane_traffic.hpp"

namespace collx::inline abi_1::exec {

// Of a call whose blocks are all alike.
struct no_tables {};

// Of both buffers of a call, for as many ranks as a group may have.
struct lane_tables {
  enum side : int { input, output };

  struct one {
    std::size_t counts[lane_peers_max];
    std::size_t offsets[lane_peers_max];
    bool has_offsets;
    bool has_counts;  // else this rank knows its own block only, which is as long as the call's

    [[nodiscard]] COLLX_HD block_table table() const noexcept {
      return {has_counts ? counts : nullptr, has_offsets ? offsets : nullptr};
    }
  };
  one sides[2];
};
// With what else a kernel is told, it has to stay below the 4 KiB that every GPU takes.
static_assert(sizeof(lane_tables) <= 2400);

// Has a map that was made elsewhere read these tables, which must stay where they are.
COLLX_HD inline void attach(chunk_map& map, lane_tables const& all) noexcept {
  map.tables(all.sides[lane_tables::input].table(), all.sides[lane_tables::output].table());
}

}  // namespace collx::inline abi_1::exec
