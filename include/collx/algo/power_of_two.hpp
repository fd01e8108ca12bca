// SPDX-License-Identifier: Apache-2.0
// Binary arithmetic for algorithms that pair ranks by the bits of their number, and the fold that
// lets them run on any number of ranks. Called by schedules only; own loops instead of <bit>,
// because the standard's functions are not callable from device code.
#pragma once

#include "collx/schedule/primitive.hpp"

namespace collx::inline abi_1::algo::detail {

// The exponent of the largest power of two that is <= x. Requires x >= 1.
[[nodiscard]] constexpr COLLX_HD std::int32_t floor_log2(std::int32_t x) {
  std::int32_t log = 0;
  while (x > 1) {
    x >>= 1;
    ++log;
  }
  return log;
}

// The exponent of the smallest power of two that is >= x. Requires x >= 1.
[[nodiscard]] constexpr COLLX_HD std::int32_t ceil_log2(std::int32_t x) {
  return x <= 1 ? 0 : floor_log2(x - 1) + 1;
}

[[nodiscard]] constexpr COLLX_HD bool is_power_of_two(std::int32_t x) { return x > 0 && (x & (x - 1)) == 0; }

// How many of the lowest bits of x are zero; `if_zero` for x == 0.
[[nodiscard]] constexpr COLLX_HD std::int32_t trailing_zeros(std::int32_t x, std::int32_t if_zero) {
  if (x == 0) return if_zero;
  std::int32_t count = 0;
  while (((x >> count) & 1) == 0) ++count;
  return count;
}

// x with its lowest `bit_count` bits cleared: the first member of x's aligned block of 2^bit_count.
[[nodiscard]] constexpr COLLX_HD std::int32_t block_start(std::int32_t x, std::int32_t bit_count) {
  return (x >> bit_count) << bit_count;
}

// Of a vector of `size` chunks, the run that core rank `index` keeps after halving at levels 0 .. level-1:
// bit i of its number says which half at level i.
[[nodiscard]] constexpr COLLX_HD region halved_run(place where, rank_t size, rank_t index,
                                                   std::int32_t level) {
  std::int32_t first = 0;
  for (std::int32_t i = 0; i < level; ++i)
    if (((index >> i) & 1) == 1) first += size >> (i + 1);
  return {where, first, size >> level};
}

// Both steps of a rank outside the core: `host` is given what it has, and gives it the result.
[[nodiscard]] constexpr COLLX_HD primitive guest_step(std::int32_t s, rank_t host, region const& given,
                                                      region const& result) {
  if (s == 0) return {.to = only(host), .operand = given};
  return {.from = only(host), .target = result, .store = true};
}

// The largest power of two that fits into n ranks, and who stands for whom in it. The n - 2^k
// surplus ranks are the odd ones among the first; each leaves its data with the even rank below it,
// and is given the result at the end. Pairs are neighbours, so that blocks of core ranks are blocks
// of ranks: whatever is combined or gathered in the order of core ranks is in the order of ranks.
struct power_of_two_core {
  std::int32_t levels;  // the core has 2^levels ranks
  rank_t surplus;       // the ranks 1, 3, ..., 2 * surplus - 1 are outside

  explicit constexpr COLLX_HD power_of_two_core(rank_t n)
      : levels(floor_log2(n)), surplus(n - (1 << levels)) {}

  [[nodiscard]] constexpr COLLX_HD rank_t size() const { return 1 << levels; }

  // What the fold adds to a chain of one message per level: the way in, and the way out if a chain
  // that begins at one guest can end at another. It ends at the complement of the core rank where it
  // began, so both are guests only if more than half of the core has one.
  [[nodiscard]] constexpr COLLX_HD std::int32_t fold_rounds() const {
    return (surplus > 0) + (2 * surplus > size());
  }

  [[nodiscard]] constexpr COLLX_HD bool is_outside(rank_t rank) const {
    return rank < 2 * surplus && rank % 2 == 1;
  }
  // This core rank stands for rank + 1 too.
  [[nodiscard]] constexpr COLLX_HD bool has_guest(rank_t rank) const {
    return rank < 2 * surplus && rank % 2 == 0;
  }

  // Number in the core of a rank that is not outside.
  [[nodiscard]] constexpr COLLX_HD rank_t index_of(rank_t rank) const {
    return rank < 2 * surplus ? rank / 2 : rank - surplus;
  }
  // The inverse; also: the first rank that core ranks from `index` on stand for, n for size().
  [[nodiscard]] constexpr COLLX_HD rank_t rank_of(rank_t index) const {
    return index < surplus ? 2 * index : index + surplus;
  }

  // Who differs from this rank in bit `level` of the core number.
  [[nodiscard]] constexpr COLLX_HD rank_t partner(rank_t rank, std::int32_t level) const {
    return rank_of(index_of(rank) ^ (1 << level));
  }

  // The chunks, one per rank, of everybody the aligned block of 2^level core ranks around `rank`
  // stands for: a contiguous run.
  [[nodiscard]] constexpr COLLX_HD region chunks_of_block(place where, rank_t rank,
                                                          std::int32_t level) const {
    rank_t const begin = block_start(index_of(rank), level);
    rank_t const first = rank_of(begin);
    return {where, first, rank_of(begin + (1 << level)) - first};
  }
};

}  // namespace collx::inline abi_1::algo::detail
