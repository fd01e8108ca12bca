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
      : sources(static_cast<std::size_t>(size)),
        destinations(static_cast<std::size_t>(size) + 2),
        input_offsets(static_cast<std::size_t>(size)),
        output_offsets(static_cast<std::size_t>(size)) {}

  array<std::byte const*> sources;
  array<std::byte*> destinations;
  // Where the blocks of a call begin that gives only their counts.
  array<std::size_t> input_offsets, output_offsets;
};

}  // namespace collx::inline abi_1::exec
