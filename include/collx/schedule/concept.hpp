// SPDX-License-Identifier: Apache-2.0
// What a type must offer to be a schedule, and what executors and the verifier assume of it.
#pragma once

#include <concepts>
#include <type_traits>

#include "collx/core/known_counts.hpp"
#include "collx/core/reproducibility.hpp"
#include "collx/schedule/primitive.hpp"

namespace collx::inline abi_1 {

// What the busiest rank does, as documented by an algorithm and counted by the verifier.
// A schedule that moves `chunks` of `chunk_count` chunks moves that fraction of the vector.
struct cost {
  std::int32_t rounds = 0;    // messages on the longest chain of dependent ones (the alpha term)
  std::int32_t messages = 0;  // messages sent by the rank that sends most
  std::int64_t chunks = 0;    // chunks sent by the rank that sends most (the beta term)

  friend constexpr bool operator==(cost const&, cost const&) = default;
  // One schedule after the other.
  friend constexpr COLLX_HD cost operator+(cost const& first, cost const& next) {
    return {first.rounds + next.rounds, first.messages + next.messages, first.chunks + next.chunks};
  }
  // Of a part of a larger schedule, to which a chunk is so many of that one's.
  [[nodiscard]] constexpr COLLX_HD cost cut_in(std::int64_t parts) const {
    return {rounds, messages, chunks * parts};
  }
};

// The most ranks that a schedule with a chunk for each pair of them may support: chunk_count is an int32.
inline constexpr rank_t paired_ranks_max = 46'340;

// A schedule is a stateless type. Everything is static, constexpr, callable on host and device:
//
//   using contract = contract::all_reduce;       what must hold at the end (collective/contract.hpp)
//   bool supports(rank_t size)                   false: not for this many ranks
//   int32 chunk_count(rank_t size)               the vector is cut in this many chunks, > 0: a multiple of
//                                                the contract's blocks, all of which it is
//   int32 step_count(problem)                    steps of this rank, >= 0
//   primitive step(problem, int32 index)         pure: same arguments, same answer
//   cost documented_cost(rank_t size)            the formula in the header's comment, as code
//
// Ordering: a rank performs its steps in order; the k-th message a rank sends to a peer is the
// k-th message that peer receives from it. There are no tags and no rounds.
//
// Optional, with defaults: `keeps_rank_order` (true: contributions are combined in rank order, so
// the operator need not commute), `scratch_chunks(size)` (chunks of place::scratch, default 0),
// `depth(size)` (messages that one rank may have in flight to one peer before the executor must
// wait; a property the verifier checks, default 2: a fused receive-reduce-send holds a message in
// each hand, so a cycle of them deadlocks with 1), `documented_cost(size, root)` (where the cost
// depends on the root; documented_cost(size) is then that of the worst root), `cost_is_bound` (true:
// no rank's cost is above the documented one, which may be that of no rank), `reproduces` (what can be relied
// on of the bits of reductions, see reproducibility; default none), `counts` (what ranks must know of blocks
// whose counts differ, see known_counts; default equal: blocks are), `shares_copying(size)` (true: whoever
// sends a large payload has as much to copy at that time as its receiver: the system may copy it, once),
// `moves_blocks` (true: chunks are blocks; steps send blocks of the input, to every peer at most one, or
// store what comes, from every peer at most once, or own blocks; and nothing else touches the places they
// store to, in any fragment), `steps_max` (no rank has more steps than that; set where there are so few that
// a GPU's executor may have each of them compiled by itself, which pays where a step's kind depends on
// nothing but its index), `staged_chunks(size)` (no rank has more chunks in messages on their way in one
// fragment, where what goes to several peers alike counts once; default documented_cost(size).chunks, which
// counts every send. Who derives from such a schedule, and sends more, says so, too).
//
// What depends on how ranks lie, and not only on how many there are, takes a shape in place of the
// size (and reads problem::inner): hierarchical algorithms do.
template <class S>
concept schedule = std::is_empty_v<S> && std::is_trivially_copyable_v<S> &&
    requires(problem p, std::int32_t i) {
  typename S::contract;
  { S::step_count(p) } -> std::same_as<std::int32_t>;
  { S::step(p, i) } -> std::same_as<primitive>;
}
&&((requires(shape n) {
  { S::supports(n) } -> std::same_as<bool>;
  { S::chunk_count(n) } -> std::same_as<std::int32_t>;
  { S::documented_cost(n) } -> std::same_as<cost>;
}) || (requires(rank_t n) {
  { S::supports(n) } -> std::same_as<bool>;
  { S::chunk_count(n) } -> std::same_as<std::int32_t>;
  { S::documented_cost(n) } -> std::same_as<cost>;
}));

template <class S>
[[nodiscard]] COLLX_HD constexpr bool keeps_rank_order() {
  if constexpr (requires { S::keeps_rank_order; }) return S::keeps_rank_order;
  else return false;
}

// Whether S asks how ranks lie.
template <class S>
concept shaped = requires(shape n) { S::chunk_count(n); };

// The questions of the concept, asked in one way of either kind of schedule.
template <class S>
[[nodiscard]] COLLX_HD constexpr bool supports(shape n) {
  if constexpr (shaped<S>) return S::supports(n);
  else return S::supports(n.size);
}

template <class S>
[[nodiscard]] COLLX_HD constexpr std::int32_t chunk_count(shape n) {
  if constexpr (shaped<S>) return S::chunk_count(n);
  else return S::chunk_count(n.size);
}

template <class S>
[[nodiscard]] COLLX_HD constexpr std::int32_t scratch_chunks(shape n) {
  if constexpr (requires { S::scratch_chunks(n); }) return S::scratch_chunks(n);
  else if constexpr (requires { S::scratch_chunks(n.size); }) return S::scratch_chunks(n.size);
  else return 0;
}

template <class S>
[[nodiscard]] COLLX_HD constexpr std::int32_t depth(shape n) {
  if constexpr (requires { S::depth(n); }) return S::depth(n);
  else if constexpr (requires { S::depth(n.size); }) return S::depth(n.size);
  else return 2;
}

// With the worst root, and with one given.
template <class S>
[[nodiscard]] COLLX_HD constexpr cost documented_cost(shape n) {
  if constexpr (shaped<S>) return S::documented_cost(n);
  else return S::documented_cost(n.size);
}

template <class S>
[[nodiscard]] COLLX_HD constexpr cost documented_cost(shape n, rank_t root) {
  if constexpr (requires { S::documented_cost(n, root); }) return S::documented_cost(n, root);
  else if constexpr (requires { S::documented_cost(n.size, root); }) return S::documented_cost(n.size, root);
  else return documented_cost<S>(n);
}

// Of how many chunks no rank has more in messages on their way (schedule/staged.hpp).
template <class S>
[[nodiscard]] constexpr bool states_staged_chunks() {
  return requires(shape n) { S::staged_chunks(n); } || requires(shape n) { S::staged_chunks(n.size); };
}
template <class S>
[[nodiscard]] constexpr std::int64_t staged_chunks_bound(shape n) {
  if constexpr (requires { S::staged_chunks(n); }) return S::staged_chunks(n);
  else if constexpr (requires { S::staged_chunks(n.size); }) return S::staged_chunks(n.size);
  else return documented_cost<S>(n).chunks;
}

// What ranks must know of blocks whose counts differ; see known_counts.
template <class S>
[[nodiscard]] COLLX_HD constexpr known_counts counts_for() {
  if constexpr (requires { S::counts; }) return S::counts;
  else return known_counts::equal;
}

template <class S>
[[nodiscard]] COLLX_HD constexpr bool cost_is_bound() {
  if constexpr (requires { S::cost_is_bound; }) return S::cost_is_bound;
  else return false;
}

template <class S>
[[nodiscard]] constexpr bool shares_copying([[maybe_unused]] rank_t size) {
  if constexpr (requires { S::shares_copying(size); }) return S::shares_copying(size);
  else return false;
}

template <class S>
[[nodiscard]] constexpr bool moves_blocks() {
  if constexpr (requires { S::moves_blocks; }) return S::moves_blocks;
  else return false;
}

// 0: unknown.
template <class S>
[[nodiscard]] COLLX_HD constexpr std::int32_t steps_max() {
  if constexpr (requires { S::steps_max; }) return S::steps_max;
  else return 0;
}

// Whether that holds for up to four ranks: who derives from a schedule, and adds steps, inherits what it
// says.
template <class S>
[[nodiscard]] COLLX_HD constexpr bool keeps_to_steps_max() {
  for (rank_t size = 1; size <= 4; ++size)
    for (rank_t rank = 0; rank < size && supports<S>(size); ++rank)
      if (S::step_count({rank, size, 0}) > steps_max<S>()) return false;
  return true;
}

// What S has. Where nothing is combined no bit can change.
template <class S>
[[nodiscard]] COLLX_HD constexpr reproducibility level_of() {
  if constexpr (!S::contract::from_all) return reproducibility::any_size;
  else if constexpr (requires { S::reproduces; }) return S::reproduces;
  else return reproducibility::none;
}

// That of a schedule made of others.
template <class First, class Second>
[[nodiscard]] COLLX_HD constexpr reproducibility lower_level() {
  return level_of<First>() < level_of<Second>() ? level_of<First>() : level_of<Second>();
}

// An algorithm is a family of schedules under one name, one nested type per collective:
// `ring::all_reduce`, `ring::all_gather`, ... A schedule written by a user is its own family.
template <class Contract, class Algorithm>
struct schedule_of {};

// Not for a schedule: one that derives from ring::all_reduce has inherited the name all_reduce.
template <class Contract, class Algorithm>
  requires(!schedule<Algorithm> && requires { typename Contract::template member<Algorithm>; })
struct schedule_of<Contract, Algorithm> {
  using type = typename Contract::template member<Algorithm>;
};

// A contract may be another one under different arguments (barrier, all_gather_v): its schedules serve.
template <class Contract, schedule Algorithm>
  requires std::derived_from<Contract, typename Algorithm::contract>
struct schedule_of<Contract, Algorithm> {
  using type = Algorithm;
};

template <class Contract, class Algorithm>
using schedule_for = typename schedule_of<Contract, Algorithm>::type;

template <class Algorithm, class Contract>
concept algorithm_for = requires {
  typename schedule_of<Contract, Algorithm>::type;
}
&&schedule<schedule_for<Contract, Algorithm>>;

}  // namespace collx::inline abi_1
