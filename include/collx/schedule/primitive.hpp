// SPDX-License-Identifier: Apache-2.0
// The words of the schedule language: what one step of one rank does. Pure data: no pointers to
// user memory, no bytes, no I/O. Executors, the verifier, the renderer and cost models read these.
#pragma once

#include "collx/core/types.hpp"

namespace collx::inline abi_1 {

// The three buffers a step can touch. For a collective called in place, input and output are the
// same memory; schedules must be correct either way (the verifier checks both). What a step has
// stored of the input is to be read from the output from then on: operators may have prepared it there.
enum class place : std::uint8_t { input, output, scratch };

// The ranks base, base + pitch, ..., size of them: a line of ranks inside a communicator, on which
// peers are numbered 0 .. size-1. The default, of size 0, is the whole communicator.
struct axis {
  rank_t base = 0;
  rank_t pitch = 1;
  rank_t size = 0;

  [[nodiscard]] COLLX_HD constexpr bool is_whole() const { return size == 0; }
  // The rank with a number on the axis.
  [[nodiscard]] COLLX_HD constexpr rank_t rank_of(rank_t number) const {
    return is_whole() ? number : base + pitch * number;
  }
  friend constexpr bool operator==(axis const&, axis const&) = default;
};

// The axis `small` of an axis.
[[nodiscard]] COLLX_HD constexpr axis embed(axis const& small, axis const& in) {
  if (small.is_whole()) return in;
  if (in.is_whole()) return small;
  return {in.base + in.pitch * small.base, in.pitch * small.pitch, small.size};
}

// The ranks first, first + stride, ..., count of them, modulo the communicator's size; or, along an
// axis, the ranks with those numbers on it, modulo its size. Closed form, so that a fan-in from
// thousands of peers costs a few words and no allocation.
struct peer_set {
  rank_t first = 0;
  std::int32_t stride = 0;
  std::int32_t count = 0;
  axis along{};

  [[nodiscard]] COLLX_HD constexpr bool empty() const { return count == 0; }

  // The k-th rank of the set, for k in 0 .. count-1. Requires first in [0, size).
  [[nodiscard]] COLLX_HD constexpr rank_t member(std::int32_t k, rank_t size) const {
    std::int64_t const raw = first + std::int64_t{k} * stride;
    if (along.is_whole() && raw >= 0 && raw < size) return static_cast<rank_t>(raw);
    if (along.is_whole() && raw >= size && raw - size < size) return static_cast<rank_t>(raw - size);
    return far_member(along, raw, size);
  }

  [[nodiscard]] COLLX_HD constexpr bool contains(rank_t rank, rank_t size) const {
    return position(rank, size) >= 0;
  }
  // The place of a rank in the set, or -1. Closed form where it can be: sets may have many members.
  [[nodiscard]] COLLX_HD constexpr std::int32_t position(rank_t rank, rank_t size) const {
    if (along.is_whole() && stride == 1) {
      rank_t const k = rank < first ? rank - first + size : rank - first;
      return k < count ? k : -1;
    }
    for (std::int32_t k = 0; k < count; ++k)
      if (member(k, size) == rank) return k;
    return -1;
  }

  friend constexpr bool operator==(peer_set const&, peer_set const&) = default;

 private:
  // What wraps around, or goes along an axis. Out of line: every loop over peers asks for members. By
  // value, so that a set may live in registers.
  [[nodiscard]] COLLX_HD COLLX_NEVER_INLINE static constexpr rank_t far_member(axis along, std::int64_t raw,
                                                                              rank_t size) {
    if (along.is_whole()) return wrapped(raw, size);
    return along.base + wrapped(raw, along.size) * along.pitch;
  }

  [[nodiscard]] COLLX_HD static constexpr rank_t wrapped(std::int64_t raw, rank_t size) {
    if (raw >= 0 && raw < size) return static_cast<rank_t>(raw);  // a division is ten times dearer
    rank_t const rest = static_cast<rank_t>(raw % size);
    return rest < 0 ? rest + size : rest;
  }
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

// Some chunks in one place. Chunk numbers count in the whole vector, whichever part of it a rank's
// buffer holds: rank 2's block of an all_gather's input is chunk 2, not 0. In scratch they number its
// slots. By default the chunks first .. first + count - 1; in general, for the k-th peer of a set and
// i in 0 .. count-1, chunk
//
//   base + (first + k * per_peer) mod modulus  +  i / run * pitch + i mod run
//
// so a fan-in or fan-out may give every peer chunks of its own (per_peer), wrapping around in the
// whole vector or in a part of it (base, modulus; 0: the whole); and chunks may come in runs of `run`
// that lie `pitch` apart (0: all in one run), as where every host has a block for one of its ranks.
//
// A region that `wraps` comes back to the begin behind the end, wherever in a run that is:
//
//   base + (first + k * per_peer  +  i / run * pitch + i mod run) mod modulus
//
// with a pitch that may be negative. It is never one piece of memory; round_the_end() makes one only
// where it has to be.
struct region {
  place where = place::input;
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int32_t per_peer = 0;
  std::int32_t run = 0;
  std::int32_t pitch = 0;
  std::int32_t base = 0;
  std::int32_t modulus = 0;
  bool wraps = false;

  [[nodiscard]] COLLX_HD constexpr bool is_one_run() const {
    return count <= 1 || (!wraps && (run == 0 || count <= run));
  }

  // The first chunk of the k-th peer's part.
  [[nodiscard]] COLLX_HD constexpr std::int32_t first_for(std::int32_t k, std::int32_t chunk_count) const {
    if (per_peer == 0) return base + first;
    std::int32_t const whole = modulus == 0 ? chunk_count : modulus;
    std::int64_t raw = first + std::int64_t{k} * per_peer;
    if (raw < 0 || raw >= whole) raw %= whole;
    return base + static_cast<std::int32_t>(raw < 0 ? raw + whole : raw);
  }

  // The i-th chunk of a part that begins at chunk `begin`.
  [[nodiscard]] COLLX_HD constexpr std::int32_t chunk(std::int32_t begin, std::int32_t i,
                                                      std::int32_t chunk_count) const {
    if (is_one_run()) return begin + i;
    std::int32_t const straight = begin + (run == 0 ? i : i / run * pitch + i % run);
    if (!wraps) return straight;
    std::int32_t const whole = modulus == 0 ? chunk_count : modulus;
    std::int32_t const rest = (straight - base) % whole;
    return base + (rest < 0 ? rest + whole : rest);
  }

  friend constexpr bool operator==(region const&, region const&) = default;
};

// `count` chunks from `first` on, in the ring of the `size` chunks from `base` on.
[[nodiscard]] COLLX_HD constexpr region round_the_end(place where, std::int32_t first, std::int32_t count,
                                                      std::int32_t size, std::int32_t base = 0) {
  return {.where = where,
          .first = first,
          .count = count,
          .base = base,
          .modulus = size,
          .wraps = first + count > size};
}

// One step: receive?, reduce?, store?, send?  (NCCL's recv-reduce-copy-send as a value, with a set
// of peers on both sides.) In order:
//   1. take one message from every rank in `from`;
//   2. combine: reducing, all of `from` in set order, where this rank itself, if it is in the set,
//      stands for `operand` (rank 3 of {1, 3, 5} computes message_1 op operand op message_5);
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
