// SPDX-License-Identifier: Apache-2.0
// Arrays a step needs when it touches many peers at once; one set per lane, made with the
// communicator, so that no step allocates.
#pragma once

#include "collx/exec/message.hpp"

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
  // Of the last call that was not a small one.
  std::byte const* last_output = nullptr;
  // Where the blocks of a call begin that gives only their counts.
  array<std::size_t> input_offsets, output_offsets;
  // Of a list of messages: how far each chain of it has got. For users of such lists only, who reserve
  // it when they make one: one chain to each peer and one from it.
  array<chain_state> chains;

  void reserve_chains() {
    if (chains.size() == 0) chains = array<chain_state>(2 * sources.size());
  }
};

}  // namespace collx::inline abi_1::exec
