// SPDX-License-Identifier: Apache-2.0
// Pipelined chain: every rank takes from one neighbour and passes on to the other, and the vector is
// cut in C chunks, so that the hops work on different chunks at the same time. Nobody sends more than
// the vector once (twice in exclusive_scan), nobody has more than two neighbours; the choice for
// broadcast and reduce of large vectors.
//
// Cost for n ranks and M bytes, sent by the busiest rank in C messages (2 C in exclusive_scan):
//   broadcast       n-1 rounds, M bytes
//   reduce          max(root, n-1-root) rounds, M: two chains, from both ends to the root
//   scan            n-1 rounds, M
//   exclusive_scan  n-1 rounds, 2 M
// Contributions are combined in rank order. No memory but the caller's buffers is used.
//
// The first chunk reaches the last rank after n-1 hops, and every hop then takes C-1 chunks more. If a
// message of m bytes takes t_s + m/B, that is
//
//   T(C) = (n-2 + C) (t_s + M/(C B)),   least for C = sqrt((n-2) M / (t_s B)),
//
// that is, for chunks of sqrt(M t_s B / (n-2)) bytes. best_chunk_count() computes it,
// and collx::best_chain (tune/best_chain.hpp) takes it in every call.
#pragma once

#include "collx/algo/composed_name.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

// The C that makes the chain of n ranks fastest for a vector of `bytes`, where a message costs
// `message_us` (t_s) plus its bytes / `bytes_per_us` (B). At least 1, and at most `most`, which is
// also the answer where a message costs nothing.
[[nodiscard]] constexpr std::int32_t best_chunk_count(double bytes, double message_us, double bytes_per_us,
                                                      rank_t n, std::int32_t most = 1024) {
  if (n <= 2 || !(bytes > 0) || !(bytes_per_us > 0)) return 1;
  double const transfer_us = bytes / bytes_per_us;
  auto const time_us = [&](std::int32_t c) { return (n - 2.0 + c) * (message_us + transfer_us / c); };
  // The time falls up to the best count and rises behind it, so the answer is where it stops to fall.
  std::int32_t low = 1, high = most;
  while (low < high) {
    std::int32_t const middle = low + (high - low) / 2;
    if (time_us(middle + 1) < time_us(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

template <std::int32_t C>
struct pipelined_chain {
  static_assert(C >= 1, "collx: a chain needs at least one chunk");

 private:
  static constexpr detail::composed_name spelled{"pipelined_chain", C};

  // What all of them answer alike: a step per chunk, unless they say otherwise.
  struct chunk_by_chunk {
    static constexpr bool keeps_rank_order = true;
    static constexpr COLLX_HD bool supports(rank_t) { return true; }
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return C; }
    static constexpr COLLX_HD std::int32_t step_count(problem) { return C; }
    static constexpr COLLX_HD cost documented_cost(rank_t n) { return n > 1 ? cost{n - 1, C, C} : cost{}; }
  };

 public:
  static constexpr char const* name = spelled.text;

  // From the root to the right, round the end, up to the rank on the root's left.
  struct broadcast : chunk_by_chunk {
    using contract = contract::broadcast;
    static constexpr COLLX_HD primitive step(problem p, std::int32_t chunk) {
      rank_t const left = p.rank == 0 ? p.size - 1 : p.rank - 1;
      rank_t const right = p.rank == p.size - 1 ? 0 : p.rank + 1;
      return {.from = p.rank == p.root ? nobody() : only(left),
              .to = right == p.root ? nobody() : only(right),
              .operand = {place::input, chunk, 1},
              .target = {place::output, chunk, 1},
              .store = true};
    }
  };

  // Ranks below the root pass upwards, ranks above it downwards, so the root joins the left chain,
  // itself and the right chain in rank order.
  struct reduce : chunk_by_chunk {
    using contract = contract::reduce;
    static constexpr reproducibility reproduces = reproducibility::any_transport;
    using chunk_by_chunk::documented_cost;
    static constexpr COLLX_HD primitive step(problem p, std::int32_t chunk) {
      bool const is_root = p.rank == p.root;
      rank_t const first = p.rank <= p.root && p.rank > 0 ? p.rank - 1 : p.rank;
      rank_t const last = p.rank >= p.root && p.rank < p.size - 1 ? p.rank + 1 : p.rank;
      peer_set const neighbours{first, 1, last - first + 1};
      return {.from = first < last ? neighbours : nobody(),
              .to = is_root ? nobody() : only(p.rank < p.root ? p.rank + 1 : p.rank - 1),
              .operand = {place::input, chunk, 1},
              .target = {place::output, chunk, 1},
              .reduce = first < last,
              .store = is_root,
              .complete = is_root && first < last};
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
      rank_t const above = n - 1 - root;
      return n > 1 ? cost{root > above ? root : above, C, C} : cost{};
    }
  };

  // The combination of ranks 0 .. r-1 comes from the left, that of 0 .. r is kept and goes on.
  struct scan : chunk_by_chunk {
    using contract = contract::scan;
    static constexpr reproducibility reproduces = reproducibility::any_transport;
    static constexpr COLLX_HD primitive step(problem p, std::int32_t chunk) {
      return {.from = p.rank == 0 ? nobody() : in_rank_order(p.rank - 1, p.rank),
              .to = p.rank == p.size - 1 ? nobody() : only(p.rank + 1),
              .operand = {place::input, chunk, 1},
              .target = {place::output, chunk, 1},
              .reduce = p.rank != 0,
              .store = true};
    }
  };

  // A scan of the left neighbours' vectors. Each is moved to the right, into the output, before the
  // chain comes by: what a rank keeps and what it passes on would otherwise be two different results.
  struct exclusive_scan : chunk_by_chunk {
    using contract = contract::exclusive_scan;
    static constexpr reproducibility reproduces = reproducibility::any_transport;
    // Chunk by chunk: give the own, take the left one's, combine. Rank 0 has nothing to take, rank 1
    // nothing to combine, and the last nobody to give to.
    static constexpr COLLX_HD std::int32_t step_count(problem p) { return C * turns(p); }
    static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
      std::int32_t const chunk = s / turns(p);
      std::int32_t const turn = s % turns(p) + is_last(p);
      peer_set const right = is_last(p) ? nobody() : only(p.rank + 1);
      region const own{place::output, chunk, 1};
      // Copied: in place, the left one's vector overwrites it.
      if (turn == 0) return {.to = right, .operand = {place::input, chunk, 1}, .copy = p.rank != 0};
      if (turn == 1)
        return {.from = only(p.rank - 1), .to = p.rank == 1 ? right : nobody(), .target = own, .store = true};
      return {.from = in_rank_order(p.rank - 1, p.rank),
              .to = right,
              .operand = own,
              .target = own,
              .reduce = true,
              .store = true};
    }
    static constexpr COLLX_HD cost documented_cost(rank_t n) {
      if (n == 1) return {};
      std::int32_t const messages = n == 2 ? C : 2 * C;
      return {n - 1, messages, messages};
    }

   private:
    static constexpr COLLX_HD bool is_last(problem p) { return p.rank == p.size - 1; }
    static constexpr COLLX_HD std::int32_t turns(problem p) {
      return (p.rank > 1 ? 3 : p.rank + 1) - is_last(p);
    }
  };
};

}  // namespace collx::inline abi_1::algo
