// SPDX-License-Identifier: Apache-2.0
// The vocabulary every layer shares. No behaviour, no standard containers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collx/core/config.hpp"

// Everything lives in an inline namespace that carries the ABI version, so that two versions of
// the library can meet in one program without violating the one-definition rule.
namespace collx::inline abi_1 {

// A rank's number within its communicator: 0 .. size-1.
using rank_t = std::int32_t;

inline constexpr rank_t no_rank = -1;

// How many ranks there are, and how they lie: ranks k * inner .. k * inner + inner - 1 share a host (or
// a board, or a rack: whatever is near). A plain number of ranks is a shape without structure.
struct shape {
  rank_t size = 1;
  rank_t inner = 1;

  constexpr shape() = default;
  COLLX_HD constexpr shape(rank_t ranks, rank_t ranks_per_group = 1) : size(ranks), inner(ranks_per_group) {}

  friend constexpr bool operator==(shape const&, shape const&) = default;
};

// What a schedule may depend on. Byte counts are deliberately absent: which steps an algorithm
// takes never depends on how many bytes travel, only how those bytes are cut does (exec/geometry).
struct problem {
  rank_t rank = 0;
  rank_t size = 1;
  rank_t root = 0;
  rank_t inner = 1;

  [[nodiscard]] COLLX_HD constexpr collx::shape shape() const { return {size, inner}; }

  friend constexpr bool operator==(problem const&, problem const&) = default;
};

}  // namespace collx::inline abi_1
