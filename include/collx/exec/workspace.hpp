// SPDX-License-Identifier: Apache-2.0
// Arrays a step needs when it touches many peers at once; one set per lane, made with the
// communicator, so that no step allocates.
#pragma once

#include "collx/exec/erased_schedule.hpp"
#include "collx/exec/input_history.hpp"
#include "collx/exec/memory_map.hpp"
#include "collx/exec/message.hpp"

namespace collx::inline abi_1::exec {

// The map of a call, and all that it was made from but the buffers.
struct kept_map {
  // So many are kept, each in one place: a program that makes a few calls in turn finds them all, mostly.
  static constexpr std::size_t places = 4;
  [[nodiscard]] static std::size_t place_of(erased_schedule const* schedule, std::size_t count) noexcept {
    return (reinterpret_cast<std::uintptr_t>(schedule) / 64 + count / 64) % places;
  }

  kept_map() noexcept {}  // a function: it is compiled once, and not in every place that makes some

  erased_schedule const* schedule = nullptr;
  erased_contract const* contract = nullptr;
  std::size_t count = 0, element_bytes = 0;
  problem where{};
  bool in_place = false;
  memory_map map{};
};

struct workspace {
  workspace() = default;
  explicit workspace(rank_t size) { reserve(size); }
  // For steps among so many ranks; before its first use.
  COLLX_COLD void reserve(rank_t size) {
    auto const peers = static_cast<std::size_t>(size);
    sources.reset(peers);
    destinations.reset(peers + 2);
    input_offsets.reset(peers);
    output_offsets.reset(peers);
  }

  array<std::byte const*> sources;
  array<std::byte*> destinations;
  // Of the last call that was not a small one.
  std::byte const* last_output = nullptr;
  input_history inputs;
  // Of the last calls with even blocks: most programs make the same ones again.
  kept_map maps[kept_map::places];
  // Where the blocks of a call begin that gives only their counts.
  array<std::size_t> input_offsets, output_offsets;
  // Of a list of messages: how far each chain of it has got. For users of such lists only, who reserve
  // it when they make one: one chain to each peer and one from it.
  array<chain_state> chains;

  void reserve_chains() {
    if (chains.size() == 0) chains.reset(2 * sources.size());
  }
};

}  // namespace collx::inline abi_1::exec
