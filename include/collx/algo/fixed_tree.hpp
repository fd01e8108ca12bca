// SPDX-License-Identifier: Apache-2.0
// A binary tree over a number of leaves that does not depend on who holds them: how sums are bracketed
// that have the same bits for every number of ranks. Index arithmetic only; called by
// collective/all_reduce_fixed_tree.hpp.
//
// Leaves are numbered 0 .. V-1 over all ranks. The node of width w = 2^k that begins at leaf a, a multiple
// of w, covers the leaves a .. min(a + w, V) - 1; it combines the two halves of its width, the left first,
// or is its left half if the right has no leaves. Ten leaves:
//
//   (((0 1) (2 3)) ((4 5) (6 7))) (8 9)
//
// A rank holds some leaves that follow each other, and so all of some nodes: at most 2 log2 V of them are
// not part of larger ones. What other ranks need of it are these.
#pragma once

#include "collx/core/types.hpp"

namespace collx::inline abi_1 {

struct leaf_range {
  std::int32_t begin = 0;
  std::int32_t end = 0;

  [[nodiscard]] COLLX_HD constexpr std::int32_t count() const { return end - begin; }
  friend constexpr bool operator==(leaf_range const&, leaf_range const&) = default;
};

struct fixed_tree {
  std::int32_t leaves = 1;

  static constexpr std::int32_t leaves_max = 1 << 24;

  // The leaves of a rank: as equal as can be, the same for all who ask. Some have none where there are
  // more ranks than leaves.
  [[nodiscard]] COLLX_HD constexpr leaf_range share(rank_t rank, rank_t size) const {
    auto const begin_of = [&](rank_t r) {
      return static_cast<std::int32_t>(std::int64_t{leaves} * r / size);
    };
    return {begin_of(rank), begin_of(rank + 1)};
  }
};

// The largest nodes that cover what was added so far, from left to right.
class covering_nodes {
 public:
  COLLX_HD explicit constexpr covering_nodes(fixed_tree tree) : leaves_(tree.leaves) {}

  // Adds the node that follows on the right. Returns how often the last two, with it, are now to be
  // combined to one.
  COLLX_HD constexpr std::int32_t add(leaf_range node) {
    nodes_[count_++] = node;
    std::int32_t combined = 0;
    for (; count_ >= 2 && are_siblings(nodes_[count_ - 2], nodes_[count_ - 1]); ++combined) {
      nodes_[count_ - 2].end = nodes_[count_ - 1].end;
      --count_;
    }
    return combined;
  }

  [[nodiscard]] COLLX_HD constexpr std::int32_t count() const { return count_; }
  [[nodiscard]] COLLX_HD constexpr leaf_range operator[](std::int32_t i) const { return nodes_[i]; }

  // Two on each level but the root's, and the one just added.
  static constexpr std::int32_t count_max = 50;
  [[nodiscard]] COLLX_HD static constexpr std::int32_t most(fixed_tree tree) {
    std::int32_t levels = 0;
    while (tree.leaves > std::int32_t{1} << levels) ++levels;
    return 2 * levels + 2;
  }

 private:
  // A left sibling is complete, so its width is its number of leaves.
  [[nodiscard]] COLLX_HD constexpr bool are_siblings(leaf_range left, leaf_range right) const {
    std::int32_t const width = left.count();
    std::int32_t const end = leaves_ - left.begin < 2 * width ? leaves_ : left.begin + 2 * width;
    return (width & (width - 1)) == 0 && left.begin % (2 * width) == 0 && right.end == end;
  }

  leaf_range nodes_[count_max];
  std::int32_t leaves_;
  std::int32_t count_ = 0;
};

// The nodes of a rank's leaves: from the left, always the widest that begins there and ends among them.
[[nodiscard]] COLLX_HD constexpr covering_nodes nodes_of(fixed_tree tree, leaf_range leaves) {
  covering_nodes nodes(tree);
  auto const end_of = [&](std::int32_t begin, std::int32_t width) {
    return tree.leaves - begin < width ? tree.leaves : begin + width;
  };
  for (std::int32_t begin = leaves.begin; begin < leaves.end;) {
    std::int32_t width = 1;
    while (begin % (2 * width) == 0 && end_of(begin, width) < tree.leaves &&
           end_of(begin, 2 * width) <= leaves.end)
      width *= 2;
    nodes.add({begin, end_of(begin, width)});
    begin = end_of(begin, width);
  }
  return nodes;
}

// The most nodes any rank has.
[[nodiscard]] COLLX_HD constexpr std::int32_t most_nodes(fixed_tree tree, rank_t size) {
  std::int32_t most = 1;
  for (rank_t r = 0; r < size; ++r) {
    std::int32_t const count = nodes_of(tree, tree.share(r, size)).count();
    if (count > most) most = count;
  }
  return most;
}

}  // namespace collx::inline abi_1
