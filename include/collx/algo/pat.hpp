// SPDX-License-Identifier: Apache-2.0
// Parallel aggregated trees: a binomial tree per block, rooted at the rank that has it or wants it, all at
// once; what the trees send over one hop is one message. The logarithm of Bruck's algorithm, but the
// far hops carry few blocks and the near ones many, and each block lies where it belongs from the
// beginning: nothing is rotated.
//
//   Jeaugey: PAT: a new algorithm for all-gather and reduce-scatter operations at scale (2025).
//
// Cost for any n ranks and M bytes (the whole vector):
//   all_gather      ceil(log2 n) rounds, (n-1)/n M bytes
//   reduce_scatter  ceil(log2 n) rounds, (n-1)/n M; half a vector of scratch
//   all_reduce      2 ceil(log2 n) rounds, 2(n-1)/n M: the fewest bytes there are, whatever n is
// Contributions are combined in ring order (r, r+1, ..., r-1), so the operator must commute.
#pragma once

#include "collx/algo/power_of_two.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

struct pat {
  static constexpr char const* name = "pat";

  struct all_gather;
  struct reduce_scatter;
  struct all_reduce;

 private:
  static constexpr COLLX_HD rank_t before(problem p, std::int32_t distance) {
    return p.rank < distance ? p.rank + p.size - distance : p.rank - distance;
  }
  static constexpr COLLX_HD rank_t behind(problem p, std::int32_t distance) {
    return p.rank < p.size - distance ? p.rank + distance : p.rank + distance - p.size;
  }

  // How many of 0, 2d, 4d, ... lie d below n: as many blocks cross a hop of length d.
  static constexpr COLLX_HD std::int32_t crossing(rank_t n, std::int32_t d) {
    return (n - d + 2 * d - 1) / (2 * d);
  }

  // The blocks first, first - 2d, first - 4d, ... that cross a hop of length d.
  static constexpr COLLX_HD region blocks(place where, rank_t first, rank_t n, std::int32_t d) {
    return {.where = where,
            .first = first,
            .count = crossing(n, d),
            .run = 1,
            .pitch = -2 * d,
            .modulus = n,
            .wraps = true};
  }

  // From far to near: before the hop of length d = 2^i a rank has the blocks of the ranks 0, 2d, 4d, ...
  // before it. It sends them d ahead, where they are those of the ranks d, 3d, 5d, ... before. Sends and
  // receives by turns; the first send is of the block in `own`, which it also stores if need be.
  static constexpr COLLX_HD primitive gather(problem p, std::int32_t s, place own) {
    region const mine{own, p.rank, 1}, home{place::output, p.rank, 1};
    if (p.size == 1) return {.operand = mine, .target = home, .store = true};
    std::int32_t const d = 1 << (detail::ceil_log2(p.size) - 1 - s / 2);
    if (s % 2 == 1)
      return {.from = only(before(p, d)),
              .target = blocks(place::output, before(p, d), p.size, d),
              .store = true};
    peer_set const to = only(behind(p, d));
    if (s == 0) return {.to = to, .operand = mine, .target = home, .store = own != place::output};
    return {.to = to, .operand = blocks(place::output, p.rank, p.size, d)};
  }

  static constexpr COLLX_HD std::int32_t reduce_steps(rank_t n) {
    return n == 1 ? 1 : 2 * detail::ceil_log2(n) + keeps_last(n);
  }

  // The same trees backwards, from near to far. Before the hop of length d a rank has partial results for the
  // ranks 0, d, 2d, ... before it, and sends every second of them d back. They live in `kept`; those that
  // leave at once, the odd ones, do so straight from the input. Sends and receives by turns.
  static constexpr COLLX_HD primitive reduce(problem p, std::int32_t s, place kept) {
    region const mine{place::input, p.rank, 1}, result{place::output, p.rank, 1};
    if (p.size == 1) return {.operand = mine, .target = result, .store = true};
    if (keeps_last(p.size) && s-- == 0) {
      rank_t const next = behind(p, 1);
      return {.operand = {place::input, next, 1},
              .target = {kept, kept == place::scratch ? p.size / 2 : next, 1},
              .store = true};
    }
    std::int32_t const d = 1 << (s / 2);
    if (s % 2 == 0) return {.to = only(before(p, d)), .operand = partial(p, before(p, d), d, kept, d == 1)};
    bool const last = 2 * d >= p.size;
    return {.from = {p.rank, d, 2},
            .operand = partial(p, p.rank, d, kept, d == 1),
            .target = last ? result : partial(p, p.rank, d, kept, false),
            .reduce = true,
            .store = true,
            .complete = last};
  }

  // The largest distance is n-1. Where that is even, nobody has a part to combine with the block there in
  // the first round, and it joins the others as it is.
  static constexpr COLLX_HD bool keeps_last(rank_t n) { return n > 2 && n % 2 == 1; }

  // What crosses a hop of length d for the ranks 0, 2d, 4d, ... before `first`. Scratch has a slot per even
  // distance from this rank; an output has every block.
  static constexpr COLLX_HD region partial(problem p, rank_t first, std::int32_t d, place kept,
                                           bool untouched) {
    if (untouched) return blocks(place::input, first, p.size, d);
    if (kept != place::scratch) return blocks(kept, first, p.size, d);
    return {.where = place::scratch,
            .first = first == p.rank ? 0 : d / 2,
            .count = crossing(p.size, d),
            .run = 1,
            .pitch = d};
  }

  static constexpr COLLX_HD cost one_way(rank_t n) {
    return {detail::ceil_log2(n), detail::ceil_log2(n), n - 1};
  }
};

struct pat::all_gather {
  using contract = contract::all_gather;
  static constexpr known_counts counts = known_counts::agreed;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    return p.size == 1 ? 1 : 2 * detail::ceil_log2(p.size);
  }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) { return gather(p, s, place::input); }
  static constexpr COLLX_HD cost documented_cost(rank_t n) { return one_way(n); }
};

struct pat::reduce_scatter {
  using contract = contract::reduce_scatter;
  static constexpr reproducibility reproduces = reproducibility::run_to_run;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t n) { return n > 2 ? (n + 1) / 2 : 0; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) { return reduce_steps(p.size); }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) { return reduce(p, s, place::scratch); }
  static constexpr COLLX_HD cost documented_cost(rank_t n) { return one_way(n); }
};

// One after the other. The output has room for all partial results. A block that was sent away comes back
// only after it has been read and combined with all others, so nothing is copied.
struct pat::all_reduce {
  using contract = contract::all_reduce;
  static constexpr reproducibility reproduces = reproducibility::run_to_run;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    return p.size == 1 ? 1 : reduce_steps(p.size) + 2 * detail::ceil_log2(p.size);
  }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    std::int32_t const first = reduce_steps(p.size);
    return s < first ? reduce(p, s, place::output) : gather(p, s - first, place::output);
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    cost const half = one_way(n);
    return {2 * half.rounds, 2 * half.messages, 2 * half.chunks};
  }
};

}  // namespace collx::inline abi_1::algo
