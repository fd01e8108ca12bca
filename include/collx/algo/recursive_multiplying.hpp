// SPDX-License-Identifier: Apache-2.0
// Recursive multiplying: recursive doubling with K ranks instead of two. At every level groups of K
// exchange all they have, K-1 messages at a time, so that the number of levels is that of the digits of n
// to the base K. The choice for small vectors where a rank can send several messages at once.
//
//   Ruefenacht, Bull, Booth: Generalisation of recursive doubling for AllReduce (2017).
//
// Cost for n = f K^L ranks, 1 <= f < K, and M bytes:
//   all_reduce  L rounds, one more if f > 1, and L (K-1) + f-1 times M bytes
// For any other n, of which f K^L is the largest such number below: one round more, and the last rank of
// those stands for the most others, one for every remainder when n is divided by f and K: less than K for
// each level. It sends them M bytes each.
// Contributions are combined in rank order, with the same brackets on every rank.
#pragma once

#include "collx/algo/composed_name.hpp"
#include "collx/algo/power_of_two.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// n ranks as f blocks of K blocks of ... K ranks, f < K. Where n is no such product, every block is cut in
// equal parts and the remainder is left to its last part. So parts look alike, and ranks that stand at the
// same place in the parts of a block lie equally far apart; at the last level, what is left over are
// guests of the rank before them.
template <std::int32_t K>
struct blocks_of_blocks {
  rank_t n;
  std::int32_t full_levels = 0;  // of K parts
  std::int32_t top = 1;          // f, the parts of the whole
  std::int32_t cells = 1;        // f K^L, the ranks that are not guests

  explicit constexpr COLLX_HD blocks_of_blocks(rank_t size) : n(size) {
    for (; cells <= n / K; cells *= K) ++full_levels;
    top = n / cells;
    cells *= top;
  }

  [[nodiscard]] constexpr COLLX_HD std::int32_t levels() const { return full_levels + (top > 1); }
  [[nodiscard]] constexpr COLLX_HD std::int32_t parts(std::int32_t level) const {
    return level < full_levels ? K : top;
  }
  // The ranks in a part of a block of this level, the last one's remainder not counted; n above all.
  [[nodiscard]] constexpr COLLX_HD std::int32_t width(std::int32_t level) const {
    if (level == levels()) return n;
    std::int32_t below = 1;
    while (level-- > 0) below *= K;
    return n / (cells / below);
  }

  // The part of its block that a rank is in, at every level down to `level`; and its place in that part.
  struct position {
    std::int32_t part = 0;
    rank_t within = 0;
  };
  [[nodiscard]] constexpr COLLX_HD position find(rank_t rank, std::int32_t level) const {
    position at{0, rank};
    for (std::int32_t i = levels() - 1; i >= level; --i) {
      std::int32_t const part = at.within / width(i), last = parts(i) - 1;
      at.part = part < last ? part : last;
      at.within -= at.part * width(i);
    }
    return at;
  }

  // The rank before, if this one is a guest of it: how far away it is. Zero for those that are none.
  [[nodiscard]] constexpr COLLX_HD std::int32_t guest_number(rank_t rank) const {
    return find(rank, 0).within;
  }

  // The guests behind a rank: the remainders of all blocks that end with it.
  [[nodiscard]] constexpr COLLX_HD std::int32_t guests(rank_t rank) const {
    std::int32_t count = 0;
    for (std::int32_t i = 0; i < levels() && find(rank, i).part == parts(i) - 1; ++i)
      count += width(i + 1) - parts(i) * width(i);
    return count;
  }

  // Who stands where this rank stands, in the parts of its block of a level; in rank order.
  [[nodiscard]] constexpr COLLX_HD peer_set group(rank_t rank, std::int32_t level) const {
    return {rank - find(rank, level).part * width(level), width(level), parts(level)};
  }
  // The others, the next one first: spreads the load.
  [[nodiscard]] constexpr COLLX_HD peer_set others(rank_t rank, std::int32_t level) const {
    std::int32_t const part = find(rank, level).part, count = parts(level);
    axis const line{rank - part * width(level), width(level), count};
    return {part + 1 == count ? 0 : part + 1, 1, count - 1, line};
  }
};

}  // namespace detail

template <std::int32_t K>
struct recursive_multiplying {
  static_assert(K >= 2, "collx: recursive_multiplying<K> needs K >= 2: two ranks that exchange, or more");

 private:
  static constexpr detail::composed_name spelled{"recursive_multiplying", K};

 public:
  static constexpr char const* name = spelled.text;

  struct all_reduce;
};

template <std::int32_t K>
struct recursive_multiplying<K>::all_reduce {
  using contract = contract::all_reduce;
  static constexpr reproducibility reproduces = reproducibility::any_transport;
  static constexpr bool keeps_rank_order = true;
  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 1; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    blocks const all(p.size);
    return all.guest_number(p.rank) > 0 ? 2 : all.levels() + 1;
  }

  // Step s > 0 finishes level s-1 and begins level s; step 0 takes the guests in, the last lets them go.
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    blocks const all(p.size);
    if (std::int32_t const number = all.guest_number(p.rank); number > 0)
      return detail::guest_step(s, p.rank - number, {place::input, 0, 1}, {place::output, 0, 1});
    std::int32_t const guests = all.guests(p.rank);
    bool const last = s == all.levels();
    bool const reduces = s > 0 || guests > 0;
    // Named: nvcc 13.0 crashes on a conditional with an aggregate operand inside a braced initializer.
    peer_set const behind{guests > 0 ? p.rank + 1 : 0, 1, guests}, with_guests{p.rank, 1, guests + 1};
    peer_set const from = s > 0 ? all.group(p.rank, s - 1) : guests > 0 ? with_guests : nobody();
    return {.from = from,
            .to = last ? behind : all.others(p.rank, s),
            .operand = {s > 1 || (s == 1 && guests > 0) ? place::output : place::input, 0, 1},
            .target = {place::output, 0, 1},
            .reduce = reduces,
            .store = reduces || last,
            // The next level overwrites what this one sends, and nothing tells that all have read it.
            .copy = !last,
            .complete = reduces && last};
  }

  // Only ranks at the end of a block have guests. A chain of messages cannot begin at a guest, go through
  // all levels and end at a guest: at the lowest it would have to go from one end to another.
  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    blocks const all(n);
    rank_t const last = n - 1 - all.guest_number(n - 1);
    std::int32_t messages = all.guests(last);
    for (std::int32_t level = 0; level < all.levels(); ++level) messages += all.parts(level) - 1;
    return {all.levels() + (n > all.cells), messages, messages};
  }

 private:
  using blocks = detail::blocks_of_blocks<K>;
};

}  // namespace collx::inline abi_1::algo
