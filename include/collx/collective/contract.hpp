// SPDX-License-Identifier: Apache-2.0
// WHAT must hold when a collective ends, as data. One description serves the verifier's proof,
// the executor's buffer layout and the tests' oracle.
#pragma once

#include "collx/core/types.hpp"
#include "collx/core/known_counts.hpp"

namespace collx::inline abi_1 {

// The blocks of the whole vector that a rank's buffer holds, in the buffer's order: first,
// first + stride, ..., count of them.
struct block_window {
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int32_t stride = 1;

  // Where a block lies in the buffer, in blocks; meant for blocks that the window holds.
  [[nodiscard]] COLLX_HD constexpr std::int32_t position(std::int32_t block) const {
    return stride == 1 ? block - first : (block - first) / stride;
  }
  [[nodiscard]] COLLX_HD constexpr bool holds(std::int32_t block) const {
    std::int32_t const at = position(block);
    return at >= 0 && at < count && first + at * stride == block;
  }
};

// A contract says of a collective on p.size ranks:
//   blocks(size)         of how many equal blocks the vector consists. A user's count is that of one
//                        block; a schedule cuts every block in chunk_count / blocks chunks.
//   input(p), output(p)  which blocks the user's buffers hold
//   in_place_at(p)       in place, where the smaller of both buffers lies in the larger, in blocks
//   from_all             true: an output chunk combines contributions, of the ranks 0 .. contributors(p)-1
//   owner(p, block)      otherwise: the one rank whose block must arrive unchanged
//   synchronizes         nothing moves: no rank may end before every other one has begun
//   rooted               the call takes a root
//   sharded              there is more than one block
// `member` names the nested type by which an algorithm family offers a schedule for it.
namespace contract {

namespace detail {

// What contracts have in common, unless they say otherwise.
struct combining {
  static constexpr bool from_all = true, rooted = false, sharded = false, synchronizes = false;
  static constexpr COLLX_HD std::int32_t blocks(rank_t) { return 1; }
  static constexpr COLLX_HD block_window input(problem) { return {0, 1}; }
  static constexpr COLLX_HD block_window output(problem) { return {0, 1}; }
  static constexpr COLLX_HD std::int32_t in_place_at(problem) { return 0; }
  static constexpr COLLX_HD rank_t contributors(problem p) { return p.size; }
  static constexpr COLLX_HD rank_t owner(problem, std::int32_t) { return no_rank; }
};

struct moving {
  static constexpr bool from_all = false, rooted = false, sharded = true, synchronizes = false;
  static constexpr COLLX_HD std::int32_t blocks(rank_t size) { return size; }
  static constexpr COLLX_HD block_window everything(problem p) { return {0, p.size}; }
  static constexpr COLLX_HD block_window own(problem p) { return {p.rank, 1}; }
  static constexpr COLLX_HD std::int32_t in_place_at(problem p) { return p.rank; }
  static constexpr COLLX_HD rank_t contributors(problem) { return 1; }
};

}  // namespace detail

struct all_reduce : detail::combining {
  static constexpr char const* name = "all_reduce";
  template <class Algorithm> using member = typename Algorithm::all_reduce;
};

struct reduce_scatter : detail::combining {
  static constexpr char const* name = "reduce_scatter";
  static constexpr bool sharded = true;
  template <class Algorithm> using member = typename Algorithm::reduce_scatter;

  static constexpr COLLX_HD std::int32_t blocks(rank_t size) { return size; }
  static constexpr COLLX_HD block_window input(problem p) { return {0, p.size}; }
  static constexpr COLLX_HD block_window output(problem p) { return {p.rank, 1}; }
  static constexpr COLLX_HD std::int32_t in_place_at(problem p) { return p.rank; }
};

struct all_gather : detail::moving {
  static constexpr char const* name = "all_gather";
  template <class Algorithm> using member = typename Algorithm::all_gather;

  static constexpr COLLX_HD block_window input(problem p) { return own(p); }
  static constexpr COLLX_HD block_window output(problem p) { return everything(p); }
  static constexpr COLLX_HD rank_t owner(problem, std::int32_t block) { return block; }
};

// Block s * size + d goes from rank s to rank d. In place, the block to a rank lies where the one
// from it will.
struct all_to_all : detail::moving {
  static constexpr char const* name = "all_to_all";
  template <class Algorithm> using member = typename Algorithm::all_to_all;

  static constexpr COLLX_HD std::int32_t blocks(rank_t size) { return size * size; }
  static constexpr COLLX_HD block_window input(problem p) { return {p.rank * p.size, p.size}; }
  static constexpr COLLX_HD block_window output(problem p) { return {p.rank, p.size, p.size}; }
  static constexpr COLLX_HD std::int32_t in_place_at(problem) { return 0; }
  static constexpr COLLX_HD rank_t owner(problem p, std::int32_t block) { return block / p.size; }
};

struct broadcast : detail::moving {
  static constexpr char const* name = "broadcast";
  static constexpr bool rooted = true, sharded = false;
  template <class Algorithm> using member = typename Algorithm::broadcast;

  static constexpr COLLX_HD std::int32_t blocks(rank_t) { return 1; }
  static constexpr COLLX_HD block_window input(problem p) { return {0, p.rank == p.root ? 1 : 0}; }
  static constexpr COLLX_HD block_window output(problem) { return {0, 1}; }
  static constexpr COLLX_HD std::int32_t in_place_at(problem) { return 0; }
  static constexpr COLLX_HD rank_t owner(problem p, std::int32_t) { return p.root; }
};

struct gather : detail::moving {
  static constexpr char const* name = "gather";
  static constexpr bool rooted = true;
  template <class Algorithm> using member = typename Algorithm::gather;

  static constexpr COLLX_HD block_window input(problem p) { return own(p); }
  static constexpr COLLX_HD block_window output(problem p) { return {0, p.rank == p.root ? p.size : 0}; }
  static constexpr COLLX_HD rank_t owner(problem, std::int32_t block) { return block; }
};

struct scatter : detail::moving {
  static constexpr char const* name = "scatter";
  static constexpr bool rooted = true;
  template <class Algorithm> using member = typename Algorithm::scatter;

  static constexpr COLLX_HD block_window input(problem p) { return {0, p.rank == p.root ? p.size : 0}; }
  static constexpr COLLX_HD block_window output(problem p) { return own(p); }
  static constexpr COLLX_HD rank_t owner(problem p, std::int32_t) { return p.root; }
};

struct reduce : detail::combining {
  static constexpr char const* name = "reduce";
  static constexpr bool rooted = true;
  template <class Algorithm> using member = typename Algorithm::reduce;

  static constexpr COLLX_HD block_window output(problem p) { return {0, p.rank == p.root ? 1 : 0}; }
};

// Rank r gets the combination of ranks 0 .. r. Its partial results are others' results, so no
// reduction is the last one of all, and `complete` is never set.
struct scan : detail::combining {
  static constexpr char const* name = "scan";
  template <class Algorithm> using member = typename Algorithm::scan;

  static constexpr COLLX_HD rank_t contributors(problem p) { return p.rank + 1; }
};

// Rank r gets the combination of ranks 0 .. r-1; rank 0 gets nothing.
struct exclusive_scan : detail::combining {
  static constexpr char const* name = "exclusive_scan";
  template <class Algorithm> using member = typename Algorithm::exclusive_scan;

  static constexpr COLLX_HD block_window output(problem p) { return {0, p.rank == 0 ? 0 : 1}; }
  static constexpr COLLX_HD rank_t contributors(problem p) { return p.rank; }
};

namespace detail {

template <class Algorithm>
concept offers_barrier = requires { typename Algorithm::barrier; };

template <class Algorithm>
struct barrier_of {};
template <offers_barrier Algorithm>
struct barrier_of<Algorithm> { using type = typename Algorithm::barrier; };
template <class Algorithm>
  requires(!offers_barrier<Algorithm> && requires { typename Algorithm::all_reduce; })
struct barrier_of<Algorithm> { using type = typename Algorithm::all_reduce; };

}  // namespace detail

// Nothing moves, and nobody leaves before everybody has come. Any all_reduce schedule, run on no
// elements, serves: its result depends on everybody. A schedule of its own need not bring every
// contribution once, only a chain of messages from everybody to everybody.
struct barrier : all_reduce {
  static constexpr char const* name = "barrier";
  static constexpr bool from_all = false, synchronizes = true;
  template <class Algorithm> using member = typename detail::barrier_of<Algorithm>::type;

  static constexpr COLLX_HD block_window input(problem) { return {0, 0}; }
  static constexpr COLLX_HD block_window output(problem) { return {0, 0}; }
};

// The collectives whose blocks have counts of their own: the same contracts, and as many schedules of
// theirs as work on uneven blocks. `counts`: what a rank knows of them.
struct all_gather_v : all_gather {
  static constexpr char const* name = "all_gather_v";
  static constexpr known_counts counts = known_counts::agreed;
};
struct reduce_scatter_v : reduce_scatter {
  static constexpr char const* name = "reduce_scatter_v";
  static constexpr known_counts counts = known_counts::agreed;
};
struct all_to_all_v : all_to_all {
  static constexpr char const* name = "all_to_all_v";
  static constexpr known_counts counts = known_counts::pairwise;
};
struct gather_v : gather {
  static constexpr char const* name = "gather_v";
  static constexpr known_counts counts = known_counts::pairwise;
};
struct scatter_v : scatter {
  static constexpr char const* name = "scatter_v";
  static constexpr known_counts counts = known_counts::pairwise;
};

// Calls f(name) for every collective until it returns true; whether it did.
template <class F>
constexpr bool any_name(F const& f) {
  return f(all_reduce::name) || f(reduce_scatter::name) || f(all_gather::name) || f(all_to_all::name) ||
         f(broadcast::name) || f(reduce::name) || f(gather::name) || f(scatter::name) || f(scan::name) ||
         f(exclusive_scan::name) || f(barrier::name) || f(all_gather_v::name) || f(reduce_scatter_v::name) ||
         f(all_to_all_v::name) || f(gather_v::name) || f(scatter_v::name);
}

}  // namespace contract
}  // namespace collx::inline abi_1
