// SPDX-License-Identifier: Apache-2.0
// The first communicator of a world: that of everybody.
#pragma once

#include "collx/communicator.hpp"

namespace collx::inline abi_1::transport {

// Takes over a world that nobody else refers to; `join()` makes this rank's engine. Throws what that throws,
// when it has given the world back. This process may live on, so the others are told not to wait for it.
template <class As, class World, class Join>
[[nodiscard]] COLLX_COLD communicator<As> of_all(World* world, Join const& join) {
  try {
    return {world, join()};
  } catch (...) {
    world->abort(status::aborted, world->rank(), no_rank);
    world->drop();
    throw;
  }
}

}  // namespace collx::inline abi_1::transport
