// SPDX-License-Identifier: Apache-2.0
// A schedule run on Segments parts of the vector, one after the other: a rank that is done with a part goes
// on to the next while those behind it still work on the first. What chains and trees gain by it, and a
// ring, where everybody is busy all the time, does not.
//
//   pipelined<chain::broadcast, 16>
//
// A schedule whose messages are runs of several blocks apart (Bruck's all_to_all) cannot be cut so: the proof
// refuses it.
//
// With P rounds for a vector of M bytes, a path of P ranks takes about (P + Segments - 1)(alpha + M/Segments
// beta) in place of P (alpha + M beta). Messages and chunks are Segments times those of the schedule, each
// as much shorter.
#pragma once

#include "collx/schedule/embed.hpp"

namespace collx::inline abi_1 {

template <schedule Part, std::int32_t Segments>
struct pipelined {
  static_assert(Segments >= 1, "collx: pipelined needs at least one segment");
  using contract = typename Part::contract;
  static constexpr bool keeps_rank_order = collx::keeps_rank_order<Part>();
  static constexpr bool cost_is_bound = true;
  static constexpr reproducibility reproduces = level_of<Part>();

  // Parts of one block are cut anew only where a schedule does not cut them itself.
  static constexpr COLLX_HD bool supports(shape n) {
    if (!collx::supports<Part>(n)) return false;
    std::int32_t const chunks = collx::chunk_count<Part>(n), blocks = contract::blocks(n.size);
    return (blocks == 1 && collx::scratch_chunks<Part>(n) <= chunks) || chunks == blocks;
  }
  static constexpr COLLX_HD std::int32_t chunk_count(shape n) {
    return Segments * collx::chunk_count<Part>(n);
  }
  static constexpr COLLX_HD std::int32_t scratch_chunks(shape n) {
    std::int32_t const own = collx::scratch_chunks<Part>(n);
    return own == 0 ? 0 : Segments * (contract::blocks(n.size) == 1 ? collx::chunk_count<Part>(n) : own);
  }
  static constexpr COLLX_HD std::int32_t depth(shape n) { return collx::depth<Part>(n); }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return Segments * Part::step_count(p); }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t index) {
    std::int32_t const steps = Part::step_count(p);
    std::int32_t const segment = index / steps, chunks = collx::chunk_count<Part>(p.shape());
    // One block: its parts follow each other. Several: each has the segments side by side.
    placement at{.chunks = chunks, .base = segment * chunks};
    if (contract::blocks(p.size) != 1) at = {.chunks = chunks, .spacing = Segments, .base = segment};
    embedding in{.input = at, .output = at, .scratch = at, .unstored = at};
    in.output.where = in.unstored.where = place::output;
    in.scratch.where = place::scratch;
    return embed(Part::step(p, index % steps), in);
  }

  static constexpr COLLX_HD cost documented_cost(shape n) { return all(collx::documented_cost<Part>(n)); }
  static constexpr COLLX_HD cost documented_cost(shape n, rank_t root) {
    return all(collx::documented_cost<Part>(n, root));
  }

 private:
  static constexpr COLLX_HD cost all(cost one) {
    return {one.rounds * Segments, one.messages * Segments, one.chunks * Segments};
  }
};

}  // namespace collx::inline abi_1
