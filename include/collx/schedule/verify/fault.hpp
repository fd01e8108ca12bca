// SPDX-License-Identifier: Apache-2.0
// What can be wrong with a schedule, one name and one sentence each, and the verdict that carries
// a finding. The list is a macro because three places must never drift apart: the enumeration,
// explain(), and the static_assert per fault in schedule/proves.hpp.
#pragma once

#include "collx/schedule/concept.hpp"

#define COLLX_DETAIL_FAULTS(X)                                                                              \
  X(size_not_supported, "the schedule does not support this number of ranks")                               \
  X(bad_chunk_count,                                                                                        \
    "chunk_count must be positive, and a multiple of the number of blocks that the contract has")           \
  X(too_large,                                                                                              \
    "ranks times chunks is more than a proof can number, 2^30: prove the schedule for fewer ranks")         \
  X(bad_step_count, "step_count is negative, or above steps_max")                                           \
  X(peer_out_of_range, "a step names a peer that is not a rank of this size")                               \
  X(duplicate_peer, "a peer set names the same rank twice")                                                 \
  X(reduces_nothing, "a step reduces fewer than two vectors, or in a collective that combines none")       \
  X(fan_in_sends, "a step that does not reduce can pass on one message, not several and not its operand")   \
  X(per_peer_misused, "per_peer is set on a region that does not serve a peer set")                         \
  X(region_out_of_range, "a step touches chunks that its buffer does not have")                             \
  X(not_pairwise, "a message carries a block whose count its receiver does not know")                        \
  X(uneven_scratch, "blocks that differ are kept in scratch, which is cut for equal ones")                  \
  X(more_than_blocks,                                                                                       \
    "the schedule states moves_blocks, but does more than to send blocks of the input, to each rank one at " \
    "most, and to store what comes, and own blocks, in the output, each block once")                        \
  X(count_mismatch, "operand, target or message of one step differ in their number of chunks")              \
  X(stores_to_input, "a step stores to place::input, which belongs to the caller")                          \
  X(stores_outside_output, "a step stores to chunks that the caller's output buffer does not have")         \
  X(overlap, "within one step a chunk is stored twice, or stored over an operand that is still needed")     \
  X(read_before_written, "a step reads a chunk that nothing has written")                                   \
  X(prepared_twice,                                                                                         \
    "a step reads from the input what was stored to the output before, which is the same memory in place: "  \
    "read it from the output, where an operator has prepared it")                                           \
  X(wrong_size, "a step puts a chunk where one of another number, and so perhaps of another size, belongs") \
  X(different_chunks, "a step combines different chunks of the vector")                                     \
  X(combined_twice, "a step combines the same rank's contribution twice")                                   \
  X(wrong_order, "contributions are combined out of rank order, though keeps_rank_order is declared")       \
  X(incomplete, "a reduction is marked `complete` but lacks contributions, or completes a chunk unmarked")  \
  X(unmatched_receive, "a step waits for a message that its peer never sends")                              \
  X(leftover_message, "a message is sent that its peer never receives")                                     \
  X(deadlock, "ranks wait for each other: the schedule cannot finish with this depth(size)")                \
  X(overwritten_in_flight,                                                                                  \
    "what a step sends is overwritten before its receiver is sure to have read it: "                        \
    "the step needs `copy`")                                                                                \
  X(push_not_received, "a step pushes a result that the receiver does not store at the same chunks")        \
  X(push_before_begin, "a step pushes to a rank that may not have begun this collective")                   \
  X(push_unsafe, "a step pushes to memory that is read or written at the same time")                        \
  X(output_not_written, "an output chunk is never written")                                                 \
  X(wrong_chunk, "an output chunk holds a different chunk of the vector")                                   \
  X(missing_contribution, "an output chunk lacks a rank's contribution")                                    \
  X(foreign_contribution, "an output chunk holds the contribution of a rank that is not to be in it")       \
  X(leaves_too_early,                                                                                       \
    "a rank can leave the barrier before another one has come: no chain of messages "                       \
    "leads from that one to it")                                                                            \
  X(wrong_owner, "an output chunk is not the unchanged chunk of the rank that owns it")                     \
  X(wrong_level,                                                                                            \
    "the brackets of the sums depend on rank or chunk more than the declared `reproduces` allows")          \
  X(more_staged, "a rank has more chunks in messages on their way than staged_chunks(size) says")           \
  X(wrong_rounds, "the longest chain of messages differs from documented_cost().rounds")                    \
  X(wrong_messages, "the messages of the busiest rank differ from documented_cost().messages")              \
  X(wrong_chunks, "the chunks sent by the busiest rank differ from documented_cost().chunks")             \
  X(above_worst_root, "documented_cost(size), which is to be that of the worst root, is below this root's")

namespace collx::inline abi_1 {

enum class fault : std::uint8_t {
  none,
#define COLLX_DETAIL_ENUMERATOR(name, text) name,
  COLLX_DETAIL_FAULTS(COLLX_DETAIL_ENUMERATOR)
#undef COLLX_DETAIL_ENUMERATOR
};

[[nodiscard]] constexpr char const* explain(fault what) {
  switch (what) {
    case fault::none: return "nothing is wrong";
#define COLLX_DETAIL_SENTENCE(name, text) \
  case fault::name: return text;
      COLLX_DETAIL_FAULTS(COLLX_DETAIL_SENTENCE)
#undef COLLX_DETAIL_SENTENCE
  }
  return "unknown fault";
}

[[nodiscard]] constexpr char const* name(fault what) {
  switch (what) {
    case fault::none: return "none";
#define COLLX_DETAIL_NAME(name, text) \
  case fault::name: return #name;
      COLLX_DETAIL_FAULTS(COLLX_DETAIL_NAME)
#undef COLLX_DETAIL_NAME
  }
  return "unknown";
}

// The outcome of a proof. With a fault, the fields say where; -1 stands for "does not apply".
// For overwritten_in_flight, `rank` and `step` are the sending step (the one that needs `copy`)
// and `peer` is its reader. For deadlock and unmatched_receive, `rank` waits for `peer`, which
// stands at `peer_step`. For wrong_order, missing_contribution and foreign_contribution, `peer` is the
// rank whose contribution comes too early, is missing, or does not belong there. `counted` is complete
// only without a fault, or with a wrong cost.
struct verdict {
  fault what = fault::none;
  rank_t rank = no_rank;
  std::int32_t step = -1;
  rank_t peer = no_rank;
  std::int32_t chunk = -1;
  std::int32_t peer_step = -1;
  rank_t size = 0;
  rank_t inner = 1;
  rank_t root = 0;
  reproducibility level = reproducibility::none;  // what was found of the bits of reductions
  bool in_place = false;
  cost counted{};

  [[nodiscard]] constexpr bool ok() const { return what == fault::none; }
  friend constexpr bool operator==(verdict const&, verdict const&) = default;
};

}  // namespace collx::inline abi_1
