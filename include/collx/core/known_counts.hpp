// SPDX-License-Identifier: Apache-2.0
// What a schedule asks, and a contract grants, where blocks have counts of their own.
#pragma once

#include "collx/core/types.hpp"

namespace collx::inline abi_1 {

// What ranks must know of blocks whose counts differ for a schedule to work on them (all_gather_v, ...).
// A schedule states it as `counts`; the proof then runs it with blocks that differ, some of them empty.
enum class known_counts : std::uint8_t {
  equal,     // the schedule works on equal blocks only: it keeps one where another was, or says nothing
  agreed,    // every rank knows the counts of all blocks
  pairwise,  // the sender and the receiver of a block do: it goes straight from the one to the other, and
             // a message of no elements is not sent
};

}  // namespace collx::inline abi_1
