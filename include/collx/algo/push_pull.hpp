// SPDX-License-Identifier: Apache-2.0
// Push and pull: senders store to their receivers' memory. Each receiver says first where its output is. For
// large vectors, where ranks reach each other's memory.
//
// A broadcast's root and its receivers copy at the same time: while a receiver takes one part of the vector
// from the root's memory, the root stores the other part to it, so that two ranks move as much each. In an
// all_gather every rank reads its own block once and stores it to all outputs: of the 2 M that each rank
// reads and writes where it takes the blocks of others, (n-1)/n M of reading is saved.
//
// Cost for n ranks and M bytes, sent by the busiest rank:
//   broadcast   2 rounds, (n-1) M (root)
//   all_gather  2 rounds, (n-1)/n M
// Of a broadcast a root stores (n-1)/n M itself, and each receiver takes as much. (all_gather counts M as the
// whole gathered vector.)
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct push_pull {
  static constexpr char const* name = "push_pull";

  struct broadcast;
  struct all_gather;

 private:
  static constexpr COLLX_HD peer_set others(problem p) {
    return {p.rank + 1 == p.size ? 0 : p.rank + 1, 1, p.size - 1};
  }
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
  static constexpr std::int64_t staged_chunks(rank_t n) { return n; }

 private:
  static constexpr COLLX_HD primitive serve(problem p, std::int32_t s) {
    peer_set const receivers = others(p);
    if (s == 0) return {.to = receivers, .operand = {place::input, 1, p.size - 1}};
    if (s == 1) return {.from = receivers, .target = {place::output, 0, 0}};
    if (s == 2)
      return {
          .to = receivers, .operand = {place::input, 0, 1}, .target = {place::output, 0, 1}, .push = true};
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

// Messages without chunks first, as above; then one step stores the own block here and to all others.
struct push_pull::all_gather {
  using contract = contract::all_gather;
  static constexpr known_counts counts = known_counts::agreed;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return p.size == 1 ? 1 : 4; }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    region const input{place::input, p.rank, 1}, output{place::output, p.rank, 1};
    if (p.size == 1) return {.operand = input, .target = output, .store = true};
    peer_set const peers = others(p);
    if (s == 0) return {.to = peers, .operand = {place::output, p.rank, 0}};
    if (s == 1) return {.from = peers, .target = {place::output, p.rank, 0}};
    if (s == 2) return {.to = peers, .operand = input, .target = output, .store = true, .push = true};
    return {.from = peers, .target = {place::output, peers.first, 1, 1}, .store = true};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n > 1 ? 2 : 0, 2 * (n - 1), n - 1}; }
  static constexpr std::int64_t staged_chunks(rank_t) { return 1; }
};

}  // namespace collx::inline abi_1::algo
