// SPDX-License-Identifier: Apache-2.0
// Ring algorithms: every rank talks to its two neighbours only, and moves the fewest bytes there
// are. The choice for large vectors on a network without a switch to exploit.
//
//   Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations (2009).
//
// Cost for n ranks and M bytes (alpha: one message, beta: one byte):
//   all_reduce      2(n-1) rounds, 2(n-1)/n M bytes sent per rank
//   reduce_scatter    n-1  rounds,   (n-1)/n M
//   all_gather        n-1  rounds,   (n-1)/n M
// Contributions are combined in ring order (r+1, r+2, ..., r), so the operator must commute.
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct ring {
  static constexpr char const* name = "ring";

  struct all_reduce;
  struct reduce_scatter;
  struct all_gather;

 private:
  static constexpr COLLX_HD rank_t left(problem p) { return p.rank == 0 ? p.size - 1 : p.rank - 1; }
  static constexpr COLLX_HD rank_t right(problem p) { return p.rank == p.size - 1 ? 0 : p.rank + 1; }

  // The chunk that passes through rank r at step s is (r - shift - s) mod n. With s below 2n-1 and a
  // shift of 1 that is two additions at most; a division would cost as much as the rest of step().
  static constexpr COLLX_HD std::int32_t chunk_at(problem p, std::int32_t s, std::int32_t shift) {
    std::int32_t c = p.rank - shift - s;
    if (c < 0) c += p.size;
    if (c < 0) c += p.size;
    return c;
  }
};

// Step 0 sends, steps 1 .. n-1 reduce: chunk c starts at rank c+1 and collects one contribution per hop,
// until it is complete at rank c. Steps n-1 .. 2n-2 pass the complete chunks on; step n-1 does both at once.
struct ring::all_reduce {
  using contract = contract::all_reduce;
  static constexpr reproducibility reproduces = reproducibility::run_to_run;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t size) { return size; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return 2 * p.size - 1; }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    std::int32_t const last_reduction = p.size - 1;
    std::int32_t const chunk = chunk_at(p, s, 1);
    bool const receives = s > 0;
    bool const reduces = receives && s <= last_reduction;
    // Named: nvcc 13.0 crashes on a conditional with an aggregate operand inside a braced initializer.
    peer_set const from = !receives ? nobody() : reduces ? peer_set{left(p), 1, 2} : only(left(p));
    return {.from = from,
            .to = s < 2 * p.size - 2 ? only(right(p)) : nobody(),
            .operand = {place::input, chunk, 1},
            .target = {place::output, chunk, 1},
            .reduce = reduces,
            .store = s >= last_reduction,
            .complete = reduces && s == last_reduction};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) { return {2 * (n - 1), 2 * (n - 1), 2 * (n - 1)}; }
};

// The first half of all_reduce: rank r ends with chunk r complete.
struct ring::reduce_scatter {
  using contract = contract::reduce_scatter;
  static constexpr reproducibility reproduces = reproducibility::run_to_run;
  static constexpr known_counts counts = known_counts::agreed;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t size) { return size; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return p.size; }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    primitive step = ring::all_reduce::step(p, s);
    if (s == p.size - 1) step.to = nobody();
    return step;
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n - 1, n - 1, n - 1}; }
};

// The second half of all_reduce, begun with the rank's own chunk instead of a reduced one.
struct ring::all_gather {
  using contract = contract::all_gather;
  static constexpr known_counts counts = known_counts::agreed;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t size) { return size; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return p.size; }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    primitive step = ring::all_reduce::step(p, p.size - 1 + s);
    if (s == 0) {
      step.from = nobody();
      step.reduce = false;
      step.complete = false;
    }
    return step;
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) { return {n - 1, n - 1, n - 1}; }
};

}  // namespace collx::inline abi_1::algo
