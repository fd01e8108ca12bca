// SPDX-License-Identifier: Apache-2.0
// Double binary tree: two trees at the same time, each for one half of the vector, and every rank that
// has children in one is a leaf of the other. So the work of all ranks is alike: a tree's few rounds
// with as few bytes as a chain's. The choice for all_reduce of medium vectors among many ranks.
//
//   Sanders, Speck, Traeff: Two-tree algorithms for full bandwidth broadcast, reduction and scan (2009).
//
// Cost for n > 1 ranks and M bytes, sent by the busiest rank:
//   all_reduce  2 ceil(log2 n) rounds, min(n, 4)/2 M bytes
//   reduce      ceil(log2 n) + 1 rounds, M      (floor(log2 n) + 1 to rank 0)
//   broadcast   floor(log2 n) + 1 rounds, M     (1 for n = 2)
// all_reduce and reduce combine in rank order, with the same brackets for every root.
//
// Both are in-order trees of positions 1, 2, 3, ...: one that ends with k zero bits has children 2^(k-1)
// below and above it, so odd ones are leaves. The first tree has rank r at position r, the second one
// further on, which makes odd even. Position 0, where there is one, is above all others. A subtree
// is a run of ranks, so reductions keep their order. (The paper shifts round the end or mirrors the
// second tree, which does not.)
#pragma once

#include "collx/algo/power_of_two.hpp"
#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// The in-order tree of the positions first .. last, and of position 0 if has_zero.
struct in_order_tree {
  std::int32_t first;
  std::int32_t last;
  bool has_zero;

  static constexpr std::int32_t none = -1;

  [[nodiscard]] constexpr COLLX_HD std::int32_t root() const { return has_zero ? 0 : top(); }
  [[nodiscard]] constexpr COLLX_HD std::int32_t parent(std::int32_t at) const {
    if (at == root()) return none;
    if (at == top()) return 0;
    // A position that does not exist has no right subtree either: its parent is the next above.
    std::int32_t const bit = at & -at;
    std::int32_t const up = (at ^ bit) | (bit << 1);
    return up <= last ? up : at ^ bit;
  }
  [[nodiscard]] constexpr COLLX_HD std::int32_t left(std::int32_t at) const {
    std::int32_t const half = (at & -at) >> 1;
    return half > 0 && at - half >= first ? at - half : none;
  }
  [[nodiscard]] constexpr COLLX_HD std::int32_t right(std::int32_t at) const {
    if (at == 0) return top();
    std::int32_t half = (at & -at) >> 1;
    while (half > 0 && at + half > last) half >>= 1;
    return half > 0 ? at + half : none;
  }

 private:
  // Above all positions but 0.
  [[nodiscard]] constexpr COLLX_HD std::int32_t top() const {
    return last < first ? none : 1 << floor_log2(last);
  }
};

// A rank in the tree of one half of the vector. Position i is rank `root` + i - half; 0 is `root`.
struct tree_member {
  in_order_tree tree;
  std::int32_t half;
  std::int32_t at;
  rank_t root;
  rank_t size;

  [[nodiscard]] constexpr COLLX_HD bool is_root() const { return at == tree.root(); }
  [[nodiscard]] constexpr COLLX_HD rank_t parent() const { return rank_at(tree.parent(at)); }
  [[nodiscard]] constexpr COLLX_HD rank_t top_rank() const { return rank_at(tree.root()); }
  [[nodiscard]] constexpr COLLX_HD region chunk(place where) const { return {where, half, 1}; }

  [[nodiscard]] constexpr COLLX_HD peer_set children() const {
    std::int32_t const left = tree.left(at), right = tree.right(at);
    if (left == in_order_tree::none) return right == in_order_tree::none ? nobody() : only(rank_at(right));
    if (right == in_order_tree::none) return only(rank_at(left));
    return {rank_at(left), right - left, 2};
  }

  // Both children and this rank between them, at once if they are equally far away.
  [[nodiscard]] constexpr COLLX_HD std::int32_t fan_ins() const {
    std::int32_t const left = tree.left(at), right = tree.right(at);
    return left != in_order_tree::none && right != in_order_tree::none && at - left != right - at ? 2 : 1;
  }
  [[nodiscard]] constexpr COLLX_HD primitive fan_in(std::int32_t index, place partial) const {
    std::int32_t const left = tree.left(at), right = tree.right(at);
    std::int32_t const first = index == 0 && left != in_order_tree::none ? left : at;
    std::int32_t const last = (index > 0 || fan_ins() == 1) && right != in_order_tree::none ? right : at;
    bool const both = first < at && at < last;
    return {.from = {rank_at(first), both ? at - first : last - first, both ? 3 : 2},
            .operand = chunk(index == 0 ? place::input : partial),
            .target = chunk(partial),
            .reduce = true,
            .store = true};
  }
  [[nodiscard]] constexpr COLLX_HD primitive take_from(rank_t rank) const {
    return {.from = only(rank), .target = chunk(place::output), .store = true};
  }

 private:
  [[nodiscard]] constexpr COLLX_HD rank_t rank_at(std::int32_t position) const {
    if (position == 0) return root;
    rank_t const rank = root + position - half;
    return rank < size ? rank : rank - size;
  }
};

}  // namespace detail

struct double_binary_tree {
  static constexpr char const* name = "double_binary_tree";

  struct all_reduce;
  struct reduce;
  struct broadcast;

 private:
  using member = detail::tree_member;

  struct two_halves {
    static constexpr COLLX_HD bool supports(rank_t) { return true; }
    static constexpr COLLX_HD std::int32_t chunk_count(rank_t) { return 2; }
  };

  // A reduction's trees are those of the ranks as they are; the second has no position 0.
  static constexpr COLLX_HD member in_tree(problem p, std::int32_t half) {
    return {{1, p.size - 1 + half, half == 0}, half, p.rank + half, 0, p.size};
  }
  // Where this rank has children, and where it is a leaf. Requires two ranks.
  static constexpr COLLX_HD member inner(problem p) { return in_tree(p, p.rank % 2); }
  static constexpr COLLX_HD member leaf(problem p) { return in_tree(p, 1 - p.rank % 2); }

  // A broadcast's trees are those of the ranks from the root on. The root is above both, so in the
  // second, where the others are one further, position 1 is empty.
  static constexpr COLLX_HD member below_root(problem p, std::int32_t half) {
    std::int32_t const distance = p.rank - p.root + (p.rank < p.root ? p.size : 0);
    return {{1 + half, p.size - 1 + half, true}, half, distance == 0 ? 0 : distance + half, p.root, p.size};
  }

  static constexpr COLLX_HD primitive alone() {
    return {.operand = {place::input, 0, 2}, .target = {place::output, 0, 2}, .store = true};
  }
};

// Up as a leaf, up and down as an inner rank, down as a leaf. An inner root turns round in one step.
struct double_binary_tree::all_reduce : two_halves {
  using contract = contract::all_reduce;
  static constexpr reproducibility reproduces = reproducibility::run_to_run;
  static constexpr bool keeps_rank_order = true;
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    if (p.size == 1) return 1;
    member const in = inner(p);
    return in.fan_ins() + (in.is_root() ? 2 : 3);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    if (p.size == 1) return alone();
    member const in = inner(p), end = leaf(p);
    if (s == 0) return {.to = only(end.parent()), .operand = end.chunk(place::input)};
    if (s == step_count(p) - 1) return end.take_from(end.parent());
    bool const last = s == in.fan_ins();
    if (s > in.fan_ins()) {
      primitive step = in.take_from(in.parent());
      step.to = in.children();
      return step;
    }
    primitive step = in.fan_in(s - 1, place::output);
    if (!last) return step;
    step.to = in.is_root() ? in.children() : only(in.parent());
    step.store = step.complete = in.is_root();
    return step;
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    if (n == 1) return {};
    std::int32_t const messages = n < 4 ? n : 4;
    return {2 * detail::ceil_log2(n), messages, messages};
  }
};

// Up both trees, and from their roots straight to the root of the reduction.
struct double_binary_tree::reduce : two_halves {
  using contract = contract::reduce;
  static constexpr reproducibility reproduces = reproducibility::run_to_run;
  static constexpr bool keeps_rank_order = true;
  // For ranks that join their children in two steps. With fewer ranks nobody does.
  static constexpr COLLX_HD std::int32_t scratch_chunks(rank_t n) { return n > 4 ? 2 : 0; }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    if (p.size == 1) return 1;
    return 1 + inner(p).fan_ins() + (p.rank == p.root ? takes_first(p) + takes_second(p) : 0);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    if (p.size == 1) return alone();
    member const in = inner(p), end = leaf(p);
    if (s == 0) return {.to = only(end.parent()), .operand = end.chunk(place::input)};
    if (s > in.fan_ins()) {
      member const half = in_tree(p, s == in.fan_ins() + 1 && takes_first(p) ? 0 : 1);
      return half.take_from(half.top_rank());
    }
    bool const is_root = p.rank == p.root;
    primitive step = in.fan_in(s - 1, is_root ? place::output : place::scratch);
    if (s < in.fan_ins()) return step;
    step.complete = in.is_root();
    step.store = in.is_root() && is_root;
    if (!step.store) step.to = only(in.is_root() ? p.root : in.parent());
    return step;
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    return n == 1 ? cost{} : cost{detail::ceil_log2(n) + 1, 2, 2};
  }
  // Rank 0 is the first tree's own root.
  static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
    if (n == 1) return {};
    return {(root == 0 ? detail::floor_log2(n) : detail::ceil_log2(n)) + 1, 2, 2};
  }

 private:
  static constexpr COLLX_HD bool takes_first(problem p) { return in_tree(p, 0).top_rank() != p.root; }
  static constexpr COLLX_HD bool takes_second(problem p) { return in_tree(p, 1).top_rank() != p.root; }
};

// The root gives each half to the top of its tree, the others hand on the one and take the other.
struct double_binary_tree::broadcast : two_halves {
  using contract = contract::broadcast;
  static constexpr COLLX_HD std::int32_t step_count(problem) { return 2; }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    // An odd distance from the root is an even position in the second tree: inner there. Between two
    // ranks both trees' messages meet, so the root begins with the second tree as its neighbour does.
    std::int32_t const distance = p.rank - p.root + (p.rank < p.root ? p.size : 0);
    bool const second_first = distance == 0 || distance % 2 == 1;
    member const m = below_root(p, second_first ? 1 - s : s);
    return {.from = m.is_root() ? nobody() : only(m.parent()),
            .to = m.children(),
            .operand = m.chunk(place::input),
            .target = m.chunk(place::output),
            .store = true};
  }

  static constexpr COLLX_HD cost documented_cost(rank_t n) {
    if (n == 1) return {};
    return {n == 2 ? 1 : detail::floor_log2(n) + 1, 2, 2};
  }
};

}  // namespace collx::inline abi_1::algo
