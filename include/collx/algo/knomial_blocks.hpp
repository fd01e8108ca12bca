// SPDX-License-Identifier: Apache-2.0
// Blocks of 1, K, K^2, ... neighbouring ranks, and the tree in which the leaders of K blocks meet at
// every level. The leader of a block is the root if it is in it, else its first rank. So a block is a
// run of ranks, and its chunks are a run of chunks, for every root. Called by schedules only.
#pragma once

#include "collx/schedule/primitive.hpp"

namespace collx::inline abi_1::algo::detail {

// The blocks of ranks of a k-nomial tree, and who leads them.
template <std::int32_t K>
struct knomial_blocks {
  static_assert(K >= 2, "collx: a k-nomial tree needs K >= 2");

  // The ranks in a full block of a level.
  [[nodiscard]] static constexpr COLLX_HD std::int32_t width(std::int32_t level) {
    std::int32_t w = 1;
    while (level-- > 0) w *= K;
    return w;
  }

  // ceil(log_K n): at this level one block holds everybody.
  [[nodiscard]] static constexpr COLLX_HD std::int32_t levels(rank_t n) {
    std::int32_t count = 0;
    for (std::int64_t w = 1; w < n; w *= K) ++count;
    return count;
  }

  // The blocks of `level` that meet in one of level + 1, and where this rank's own is among them.
  struct meeting {
    rank_t first = 0;         // rank where the first of the blocks begins
    std::int32_t width = 1;   // ranks from one block to the next
    std::int32_t blocks = 1;  // those that hold a rank
    std::int32_t own = 0;

    // The first ranks of the other blocks: their leaders, unless the root is in them.
    [[nodiscard]] constexpr COLLX_HD peer_set others() const {
      std::int32_t const next = own + 1 < blocks ? own + 1 : 0;
      return {next, 1, blocks - 1, {first, width, blocks}};
    }
    // The chunks, one per rank, of the i-th block.
    [[nodiscard]] constexpr COLLX_HD region chunks(place where, std::int32_t i, rank_t n) const {
      rank_t const begin = first + i * width;
      return {where, begin, n - begin < width ? n - begin : width};
    }
  };

  [[nodiscard]] static constexpr COLLX_HD meeting meet(rank_t rank, rank_t n, std::int32_t level) {
    std::int32_t const w = width(level);
    std::int32_t const number = rank / w;
    rank_t const first = number / K * K * w;
    std::int32_t const held = (n - 1 - first) / w + 1;
    return {first, w, held < K ? held : K, number % K};
  }

  // This rank leads its blocks of the levels up to this one.
  [[nodiscard]] static constexpr COLLX_HD std::int32_t height(problem p) {
    std::int32_t const top = levels(p.size);
    if (p.rank == p.root) return top;
    std::int32_t level = 0;
    for (std::int64_t w = K; level < top && p.rank % w == 0 && p.rank / w != p.root / w; w *= K) ++level;
    return level;
  }

  // Who leads the smallest block that this rank does not lead. Not for the root.
  [[nodiscard]] static constexpr COLLX_HD rank_t parent(problem p) {
    std::int32_t const level = height(p);
    rank_t const first = meet(p.rank, p.size, level).first;
    return p.root >= first && (p.root - first) / width(level) < K ? p.root : first;
  }

  // The levels, of those that this rank leads, on which it meets somebody.
  [[nodiscard]] static constexpr COLLX_HD std::int32_t meetings(problem p) {
    std::int32_t count = 0;
    for (std::int32_t level = height(p); level-- > 0;) count += meet(p.rank, p.size, level).blocks > 1;
    return count;
  }

  // The index-th of these from the top, where the largest blocks meet.
  [[nodiscard]] static constexpr COLLX_HD meeting meeting_from_top(problem p, std::int32_t index) {
    for (std::int32_t level = height(p); level-- > 0;) {
      meeting const m = meet(p.rank, p.size, level);
      if (m.blocks > 1 && index-- == 0) return m;
    }
    return {p.rank};
  }

  // How many ranks this one leads without anybody in between.
  [[nodiscard]] static constexpr COLLX_HD std::int32_t children(problem p) {
    std::int32_t count = 0;
    for (std::int32_t level = height(p); level-- > 0;) count += meet(p.rank, p.size, level).blocks - 1;
    return count;
  }

  // The index-th child, from the largest block to the smallest, and the chunks of its block.
  struct subtree {
    rank_t leader = no_rank;
    region chunks{};
  };
  [[nodiscard]] static constexpr COLLX_HD subtree child(problem p, std::int32_t index, place where) {
    for (std::int32_t level = height(p); level-- > 0;) {
      meeting const m = meet(p.rank, p.size, level);
      if (index >= m.blocks - 1) {
        index -= m.blocks - 1;
        continue;
      }
      std::int32_t const i = index < m.own ? index : index + 1;
      return {m.first + i * m.width, m.chunks(where, i, p.size)};
    }
    return {};
  }

  // How many chunks the largest block that this rank leads has. Not for the root.
  [[nodiscard]] static constexpr COLLX_HD std::int32_t led_chunks(problem p) {
    std::int32_t const w = width(height(p));
    return p.size - p.rank < w ? p.size - p.rank : w;
  }

  // A block of level l is full of paths of l hops if it has a rank without a zero among its l digits,
  // the least of which is 1...1. The largest blocks are of level L-1, the first of them is full, and
  // only from a root in that one it takes a last block with few ranks to be a hop shorter than L.
  [[nodiscard]] static constexpr COLLX_HD std::int32_t longest_path(rank_t n, bool root_in_first_block) {
    if (n == 1) return 0;
    std::int32_t const top = levels(n);
    std::int32_t const w = width(top - 1);
    return top - (root_in_first_block && n - w <= (w - 1) / (K - 1));
  }
};

}  // namespace collx::inline abi_1::algo::detail
