// SPDX-License-Identifier: Apache-2.0
// Arrays a step needs when it touches many peers at once; one set per lane, made with the
// communicator, so that no step allocates.
#pragma once

#include "collx/core/array.hpp"
#include "collx/core/types.hpp"

namespace collx::inline abi_1::exec {

struct workspace {
  workspace() = default;
  explicit workspace(rank_t size)
      : sources(static_cast<std::size_t>(size)), destinations(static_cast<std::size_t>(size) + 2) {}

  array<std::byte const*> sources;
  array<std::byte*> destinations;
};

}  // namespace collx::inline abi_1::exec
