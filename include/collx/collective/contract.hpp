// SPDX-License-Identifier: Apache-2.0
// WHAT must hold when a collective ends, as data. One description serves the verifier's proof,
// the executor's buffer layout and the tests' oracle.
#pragma once

#include "collx/core/types.hpp"

namespace collx::inline abi_1 {

// The chunks of the whole vector that a rank's buffer holds: [first, first + count).
struct chunk_window {
  std::int32_t first = 0;
  std::int32_t count = 0;

  [[nodiscard]] COLLX_HD constexpr bool holds(std::int32_t chunk) const {
    return chunk >= first && chunk < first + count;
  }
};

// A contract answers, for a rank (problem) and a number of chunks:
//   input(p, chunks), output(p, chunks)   which chunks of the vector the user's buffers hold
//   from_all                              true: an output chunk combines every rank's contribution
//   owner(p, chunk, chunks)               otherwise: the one rank whose chunk must arrive unchanged
//   rooted                                the call takes a root
//   sharded                               the buffers differ by one block per rank: a user's count
//                                         is per rank, and chunk c lies at block c / (chunks/size)
// `member` names the nested type by which an algorithm family offers a schedule for it.
namespace contract {

struct all_reduce {
  static constexpr char const* name = "all_reduce";
  static constexpr bool from_all = true, rooted = false, sharded = false;
  template <class Algorithm> using member = typename Algorithm::all_reduce;

  static constexpr COLLX_HD chunk_window input(problem, std::int32_t chunks) { return {0, chunks}; }
  static constexpr COLLX_HD chunk_window output(problem, std::int32_t chunks) { return {0, chunks}; }
  static constexpr COLLX_HD rank_t owner(problem, std::int32_t, std::int32_t) { return no_rank; }
};

struct reduce_scatter {
  static constexpr char const* name = "reduce_scatter";
  static constexpr bool from_all = true, rooted = false, sharded = true;
  template <class Algorithm> using member = typename Algorithm::reduce_scatter;

  static constexpr COLLX_HD chunk_window input(problem, std::int32_t chunks) { return {0, chunks}; }
  static constexpr COLLX_HD chunk_window output(problem p, std::int32_t chunks) {
    return {p.rank * (chunks / p.size), chunks / p.size};
  }
  static constexpr COLLX_HD rank_t owner(problem, std::int32_t, std::int32_t) { return no_rank; }
};

struct all_gather {
  static constexpr char const* name = "all_gather";
  static constexpr bool from_all = false, rooted = false, sharded = true;
  template <class Algorithm> using member = typename Algorithm::all_gather;

  static constexpr COLLX_HD chunk_window input(problem p, std::int32_t chunks) {
    return {p.rank * (chunks / p.size), chunks / p.size};
  }
  static constexpr COLLX_HD chunk_window output(problem, std::int32_t chunks) { return {0, chunks}; }
  static constexpr COLLX_HD rank_t owner(problem p, std::int32_t chunk, std::int32_t chunks) {
    return chunk / (chunks / p.size);
  }
};

struct broadcast {
  static constexpr char const* name = "broadcast";
  static constexpr bool from_all = false, rooted = true, sharded = false;
  template <class Algorithm> using member = typename Algorithm::broadcast;

  static constexpr COLLX_HD chunk_window input(problem p, std::int32_t chunks) {
    return {0, p.rank == p.root ? chunks : 0};
  }
  static constexpr COLLX_HD chunk_window output(problem, std::int32_t chunks) { return {0, chunks}; }
  static constexpr COLLX_HD rank_t owner(problem p, std::int32_t, std::int32_t) { return p.root; }
};

struct reduce {
  static constexpr char const* name = "reduce";
  static constexpr bool from_all = true, rooted = true, sharded = false;
  template <class Algorithm> using member = typename Algorithm::reduce;

  static constexpr COLLX_HD chunk_window input(problem, std::int32_t chunks) { return {0, chunks}; }
  static constexpr COLLX_HD chunk_window output(problem p, std::int32_t chunks) {
    return {0, p.rank == p.root ? chunks : 0};
  }
  static constexpr COLLX_HD rank_t owner(problem, std::int32_t, std::int32_t) { return no_rank; }
};

// A barrier is an all_reduce of nothing: nobody leaves before everybody's contribution, of zero
// bytes, has reached it. Any all_reduce schedule therefore serves, and there is no second list.
struct barrier : all_reduce {
  static constexpr char const* name = "barrier";
};

}  // namespace contract
}  // namespace collx::inline abi_1
