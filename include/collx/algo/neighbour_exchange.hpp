// SPDX-License-Identifier: Apache-2.0
// Neighbour exchange: ranks swap what they got last with their left and right neighbours by turns. Half
// the rounds of a ring, still with neighbours only.
//
//   Chen, Zhang, Zhang, Yuan: Performance evaluation of allgather algorithms on terascale Linux cluster
//   with fast Ethernet (2005).
//
// Cost for an even number n of ranks and M bytes (the whole vector):
//   all_gather  n/2 rounds, (n-1)/n M bytes
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
  static constexpr COLLX_HD bool supports(rank_t n) { return n % 2 == 0 || n == 1; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    return p.size <= 2 ? p.size : p.size / 2 + 2;
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    peer_set const mate = p.size > 1 ? only(p.rank ^ 1) : nobody();
    if (s == 0)
      return {.to = mate,
              .operand = {place::input, p.rank, 1},
              .target = {place::output, p.rank, 1},
              .store = true};
    if (s == 1) return {.from = mate, .target = {place::output, p.rank ^ 1, 1}, .store = true};
    region const own_pair{place::output, p.rank - p.rank % 2, 2};
    if (s == 2) return {.to = neighbour(p, 1), .operand = own_pair};
    std::int32_t const round = s - 2;
    bool const last = round == p.size / 2 - 1;
    return {.from = neighbour(p, round),
            .to = last ? nobody() : neighbour(p, round + 1),
            .target = {place::output, 2 * pair_of(p, round), 2},
            .store = true};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n / 2, n / 2, n - 1}; }

 private:
  // Even ranks look left in odd rounds, odd ranks in even ones.
  static constexpr COLLX_HD peer_set neighbour(problem p, std::int32_t round) {
    if ((p.rank + round) % 2 == 1) return only(p.rank == 0 ? p.size - 1 : p.rank - 1);
    return only(p.rank == p.size - 1 ? 0 : p.rank + 1);
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
