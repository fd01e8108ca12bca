// SPDX-License-Identifier: Apache-2.0
// Neighbour exchange: ranks swap what they got last with their left and right neighbours by turns. Half
// the rounds of a ring, still with neighbours only.
//
//   Chen, Zhang, Zhang, Yuan: Performance evaluation of allgather algorithms on terascale Linux cluster
//   with fast Ethernet (2005).
//
// Cost for n ranks and M bytes (the whole vector):
//   all_gather, n even  n/2 rounds, (n-1)/n M bytes in n/2 messages
//               n odd   (n+1)/2 rounds, (3n-1)/(2n) M bytes in (n+1)/2 messages (3 ranks: 3 rounds, M)
// The paper has even numbers only. Of an odd one the last rank gives its block to the pair on its left, which
// from then on travels as three blocks; and is given a half of the vector by either neighbour at the end.
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct neighbour_exchange {
  static constexpr char const* name = "neighbour_exchange";

  struct all_gather;
};

// Ranks 2q and 2q+1 exchange their blocks, and from then on pairs of blocks travel. In round i > 0 a rank
// passes on what it got in round i-1: an even rank gets pair q-1 from its left neighbour, then q+1 from
// its right one, q-2, q+2, ...; an odd rank gets q+1 from its right one, then q-1, q+2, q-2, ...
struct neighbour_exchange::all_gather {
  using contract = contract::all_gather;
  static constexpr known_counts counts = known_counts::agreed;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    if (p.size == 1) return 1;
    if (is_guest(p)) return 2;
    rank_t const pairs = p.size / 2;
    return (pairs > 1 ? pairs + 2 : 2) + takes_guest(p) + serves_guest(p);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    region const mine{place::input, p.rank, 1}, home{place::output, p.rank, 1};
    if (p.size == 1) return {.operand = mine, .target = home, .store = true};
    if (is_guest(p)) return guest_step(p, s);
    if (serves_guest(p) && s == step_count(p) - 1)
      return {.to = only(p.size - 1), .operand = {place::output, p.rank == 0 ? 0 : p.size / 2, p.size / 2}};
    bool const takes = takes_guest(p);
    if (takes && s == 0)
      return {
          .from = {p.rank, 1, 2}, .operand = mine, .target = {place::output, p.rank, 1, 1}, .store = true};
    std::int32_t const turn = s - takes;
    peer_set const mate = only(p.rank ^ 1);
    if (turn == 0 && takes) return {.to = mate, .operand = {place::output, p.rank, 2}};
    if (turn == 0) return {.to = mate, .operand = mine, .target = home, .store = true};
    if (turn == 1) return {.from = mate, .target = of_rank(p, p.rank ^ 1), .store = true};
    if (turn == 2) return {.to = neighbour(p, 1), .operand = of_pair(p, p.rank / 2)};
    std::int32_t const round = turn - 2;
    bool const last = round == p.size / 2 - 1;
    return {.from = neighbour(p, round),
            .to = last ? nobody() : neighbour(p, round + 1),
            .target = of_pair(p, pair_of(p, round)),
            .store = true};
  }

  // Of an odd number the rank that takes the guest in is the busiest: to its mate go two blocks, to its
  // right neighbour three, then two at a time, and half of the vector to the guest. What the guest's block
  // makes late does not come back to who serves the guest in time, but with 3 ranks, where there is one pair.
  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    rank_t const pairs = n / 2;
    if (n % 2 == 0 || n == 1) return {pairs, pairs, n - 1};
    return {pairs + 1 + (n == 3), pairs + 1, 3 * pairs + (n > 3)};
  }

 private:
  // The last of an odd number of ranks stands outside. The rank on its left takes its block in, and both
  // neighbours serve it.
  static constexpr COLLX_HD bool is_guest(problem p) { return p.size % 2 == 1 && p.rank == p.size - 1; }
  static constexpr COLLX_HD bool takes_guest(problem p) { return p.size % 2 == 1 && p.rank == p.size - 2; }
  static constexpr COLLX_HD bool serves_guest(problem p) {
    return takes_guest(p) || (p.size % 2 == 1 && p.rank == 0);
  }
  static constexpr COLLX_HD primitive guest_step(problem p, std::int32_t s) {
    if (s == 0)
      return {.to = only(p.rank - 1),
              .operand = {place::input, p.rank, 1},
              .target = {place::output, p.rank, 1},
              .store = true};
    return {.from = {0, p.rank - 1, 2}, .target = {place::output, 0, p.size / 2, p.size / 2}, .store = true};
  }

  // The ranks that exchange: all but a guest.
  static constexpr COLLX_HD rank_t exchanging(problem p) { return p.size - p.size % 2; }

  // The chunks that a rank and a pair bring: the guest's with those of who takes it in.
  static constexpr COLLX_HD region of_rank(problem p, rank_t rank) {
    return {place::output, rank, rank == exchanging(p) - 1 ? p.size - rank : 1};
  }
  static constexpr COLLX_HD region of_pair(problem p, rank_t pair) {
    return {place::output, 2 * pair, 1 + of_rank(p, 2 * pair + 1).count};
  }

  // Even ranks look left in odd rounds, odd ranks in even ones.
  static constexpr COLLX_HD peer_set neighbour(problem p, std::int32_t round) {
    rank_t const last = exchanging(p) - 1;
    if ((p.rank + round) % 2 == 1) return only(p.rank == 0 ? last : p.rank - 1);
    return only(p.rank == last ? 0 : p.rank + 1);
  }

  // The pair that comes in a round: from ever further away, on the side where it comes from.
  static constexpr COLLX_HD std::int32_t pair_of(problem p, std::int32_t round) {
    std::int32_t const distance = (round + 1) / 2, pairs = p.size / 2;
    bool const from_left = (p.rank + round) % 2 == 1;
    std::int32_t const pair = p.rank / 2 + (from_left ? -distance : distance);
    return pair < 0 ? pair + pairs : pair >= pairs ? pair - pairs : pair;
  }
};

}  // namespace collx::inline abi_1::algo
