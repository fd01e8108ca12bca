// SPDX-License-Identifier: Apache-2.0
// Push and pull: the root and its receivers copy at the same time. Each receiver says where its output is,
// and while it takes one part of the vector from the root's memory, the root stores the other part to it.
// Where ranks reach each other's memory, all of them move as much: the choice for broadcast of large vectors
// to one other rank.
//
// Cost for n ranks and M bytes, sent by the busiest rank:
//   broadcast  2 rounds, (n-1) M (root)
// Of these a root stores (n-1)/n M itself, and each receiver takes as much.
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct push_pull {
  static constexpr char const* name = "push_pull";

  struct broadcast;
};

// Chunk 0 is pushed, the others are pulled. The message without chunks is what the push waits for: it says
// where to, and that the receiver has begun.
struct push_pull::broadcast {
  using contract = contract::broadcast;
  static constexpr COLLX_HD bool shares_copying(rank_t) { return true; }
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    return p.size == 1 ? 1 : p.rank == p.root ? 4 : 3;
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    if (p.size == 1) return own_copy(p);
    return p.rank == p.root ? serve(p, s) : take(p, s);
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    return {n > 1 ? 2 : 0, 2 * (n - 1), std::int64_t{n} * (n - 1)};
  }

 private:
  static constexpr COLLX_HD primitive serve(problem p, std::int32_t s) {
    peer_set const others{p.rank + 1 == p.size ? 0 : p.rank + 1, 1, p.size - 1};
    if (s == 0) return {.to = others, .operand = {place::input, 1, p.size - 1}};
    if (s == 1) return {.from = others, .target = {place::output, 0, 0}};
    if (s == 2)
      return {.to = others, .operand = {place::input, 0, 1}, .target = {place::output, 0, 1}, .push = true};
    return own_copy(p);
  }

  static constexpr COLLX_HD primitive take(problem p, std::int32_t s) {
    if (s == 0) return {.to = only(p.root), .operand = {place::output, 0, 0}};
    if (s == 1) return {.from = only(p.root), .target = {place::output, 1, p.size - 1}, .store = true};
    return {.from = only(p.root), .target = {place::output, 0, 1}, .store = true};
  }

  static constexpr COLLX_HD primitive own_copy(problem p) {
    return {.operand = {place::input, 0, p.size}, .target = {place::output, 0, p.size}, .store = true};
  }
};

}  // namespace collx::inline abi_1::algo
