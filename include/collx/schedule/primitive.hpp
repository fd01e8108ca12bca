// SPDX-License-Identifier: Apache-2.0
// The words of the schedule language: what one step of one rank does. Pure data: no pointers to
// user memory, no bytes, no I/O. Executors, the verifier, the renderer and simulators read these.
#pragma once

#include "collx/core/types.hpp"

namespace collx::inline abi_1 {

// The three buffers a step can touch. For a collective called in place, input and output are the
// same memory; schedules must be correct either way (the verifier checks both).
enum class place : std::uint8_t { input, output, scratch };

// The ranks first, first + stride, ..., count of them, modulo the communicator's size. Closed form,
// so that a fan-in from thousands of peers costs twelve bytes and no allocation.
struct peer_set {
  rank_t first = 0;
  std::int32_t stride = 0;
  std::int32_t count = 0;

  [[nodiscard]] COLLX_HD constexpr bool empty() const { return count == 0; }

  // The k-th rank of the set, for k in 0 .. count-1. Requires first in [0, size).
  [[nodiscard]] COLLX_HD constexpr rank_t member(std::int32_t k, rank_t size) const {
    std::int64_t const raw = first + std::int64_t{k} * stride;
    if (raw >= 0 && raw < size) return static_cast<rank_t>(raw);  // a division is ten times dearer
    rank_t const wrapped = static_cast<rank_t>(raw % size);
    return wrapped < 0 ? wrapped + size : wrapped;
  }

  [[nodiscard]] COLLX_HD constexpr bool contains(rank_t rank, rank_t size) const {
    for (std::int32_t k = 0; k < count; ++k)
      if (member(k, size) == rank) return true;
    return false;
  }

  friend constexpr bool operator==(peer_set const&, peer_set const&) = default;
};

[[nodiscard]] COLLX_HD constexpr peer_set nobody() { return {}; }
[[nodiscard]] COLLX_HD constexpr peer_set only(rank_t peer) { return {peer, 0, 1}; }
// Two ranks in ascending order, whoever of them asks: the operand order of a pairwise reduction.
[[nodiscard]] COLLX_HD constexpr peer_set in_rank_order(rank_t a, rank_t b) {
  return a < b ? peer_set{a, b - a, 2} : peer_set{b, a - b, 2};
}
[[nodiscard]] COLLX_HD constexpr peer_set everybody(rank_t size) { return {0, 1, size}; }
// Everybody, `rank` itself last: spreads the load where the order does not matter.
[[nodiscard]] COLLX_HD constexpr peer_set everybody_after(rank_t rank, rank_t size) {
  return {rank + 1 == size ? 0 : rank + 1, 1, size};
}

// A run of chunks in one place. Chunk numbers count in the whole vector, whichever part of it a
// rank's buffer holds: rank 2's block of an all_gather's input is chunk 2, not 0. A fan-in or
// fan-out may give every peer its own chunk: the k-th peer of the set then gets the run that begins
// at first + k * per_peer, modulo the chunk count.
struct region {
  place where = place::input;
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int32_t per_peer = 0;

  [[nodiscard]] COLLX_HD constexpr std::int32_t first_for(std::int32_t k, std::int32_t chunk_count) const {
    if (per_peer == 0) return first;
    std::int64_t const raw = first + std::int64_t{k} * per_peer;
    return static_cast<std::int32_t>(raw < chunk_count ? raw : raw % chunk_count);
  }

  friend constexpr bool operator==(region const&, region const&) = default;
};

// One step: receive?, reduce?, store?, send?  (NCCL's recv-reduce-copy-send as a value, with a set
// of peers on both sides.) In order:
//   1. take one message from every rank in `from`;
//   2. combine: reducing, all of `from` in set order, where this rank itself must stand in the set
//      and stands for `operand` (rank 3 of {1, 3, 5} computes message_1 op operand op message_5);
//      not reducing, each message is a result of its own, and this rank in the set (if it is)
//      stands for a copy of `operand`;
//      with nobody in `from`, the result is `operand` itself;
//      `target` gives the size of every message, so it is set even where nothing is stored;
//   3. `store` the result to `target` (the k-th message of a fan-in to its per-peer run);
//   4. send the result to every rank in `to` (this rank in the set is skipped). With nobody in
//      `from`, the k-th peer gets the per-peer run of `operand`.
struct primitive {
  peer_set from{};
  peer_set to{};
  region operand{};
  region target{};
  bool reduce = false;
  bool store = false;
  // The payload must be copied out before this step ends, because a later step of the sender
  // overwrites it while a receiver that reads in place may still be reading. The verifier reports
  // every step that needs this and does not say so.
  bool copy = false;
  // A sender that can reach the receivers' memory may store straight into their target, during
  // this step. The verifier proves that nobody reads or writes there at that time.
  bool push = false;
  // This reduction is the one that completes the result: it now holds every rank's contribution.
  // Operators that end with a scaling (avg) apply it here, once.
  bool complete = false;

  friend constexpr bool operator==(primitive const&, primitive const&) = default;
};

}  // namespace collx::inline abi_1
