// SPDX-License-Identifier: Apache-2.0
// Threads that do one piece of work together. Kernels are written over this concept, so that the same text
// runs as a CUDA block (cuda/block_team.cuh) and, under the thread sanitizer, as threads of the host.
#pragma once

#include <concepts>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::device {

// Every thread of a team has an object of its own, knows its number (0 .. size() - 1) and calls the same
// functions in the same order. sync() returns when all have called it; what they wrote before is then visible
// to all of them.
template <class T>
concept team = requires(T& mine, T const& seen) {
  { seen.rank() }
  noexcept->std::same_as<int>;
  { seen.size() }
  noexcept->std::same_as<int>;
  { mine.sync() }
  noexcept;
};

// A thread on its own.
struct solo_team {
  [[nodiscard]] COLLX_HD constexpr int rank() const noexcept { return 0; }
  [[nodiscard]] COLLX_HD constexpr int size() const noexcept { return 1; }
  COLLX_HD constexpr void sync() noexcept {}
};

}  // namespace collx::inline abi_1::device
