// SPDX-License-Identifier: Apache-2.0
// Whose call it is: what executors and engines know of the group.
#pragma once

#include "collx/schedule/primitive.hpp"

namespace collx::inline abi_1::exec {

// Where a rank stands in the group that a call is of: the ranks of its endpoint, or those on an axis of
// them, which share everything else (see mesh.hpp). `where` counts in the group.
struct standing {
  problem where{};
  axis along{};
  // Requests that were started in the group: what its members choose lanes by, whatever other groups of
  // the endpoint do. Null for the group of all its ranks, which the engine counts.
  std::uint32_t* started = nullptr;
};

}  // namespace collx::inline abi_1::exec
