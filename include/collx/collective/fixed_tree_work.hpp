// SPDX-License-Identifier: Apache-2.0
// What a rank does in an all_reduce_fixed_tree, between its two exchanges: combines leaves to nodes, and
// nodes to the root.
#pragma once

#include <cstring>

#include "collx/algo/fixed_tree.hpp"
#include "collx/collective/invocation.hpp"
#include "collx/device/copy_cached.hpp"
#include "collx/exec/geometry.hpp"
#include "collx/exec/kept_memory.hpp"

namespace collx::inline abi_1::detail {

// Combines vectors that are nodes of a tree, in order, as far as they go. A block of elements at a time,
// so that what is not finished stays in the cache.
template <class T, class Op>
class tree_combiner {
 public:
  static constexpr std::size_t block = sizeof(T) >= 4096 ? 1 : 4096 / sizeof(T);

  // Elements of memory that it works in.
  [[nodiscard]] static std::size_t room(fixed_tree tree) noexcept {
    return block * static_cast<std::size_t>(covering_nodes::most(tree));
  }
  tree_combiner(fixed_tree tree, Op const& op, T* memory) noexcept : tree_(tree), op_(op), room_(memory) {}

  // source(f): calls f(node, data) for each node from left to right, with data of `count` elements.
  // result(k): where the k-th of the nodes that remain is to go.
  template <class Source, class Result>
  void combine(std::size_t count, Source const& source, Result const& result) const noexcept {
    for (std::size_t at = 0; at < count; at += block) {
      std::size_t const n = count - at < block ? count - at : block;
      covering_nodes nodes(tree_);
      T const* values[covering_nodes::count_max];
      source([&](leaf_range node, T const* data) {
        values[nodes.count()] = data + at;
        for (std::int32_t left = nodes.add(node), k = nodes.count() + left - 2; left > 0; --left, --k) {
          T* const sum = room_ + static_cast<std::size_t>(k) * block;
          device::combine(&sum, 1, &values[k], 2, n, op_, false, rank_t{1});
          values[k] = sum;
        }
      });
      for (std::int32_t k = 0; k < nodes.count(); ++k)
        device::copy_cached(result(k) + at, values[k], n * sizeof(T));
    }
  }

 private:
  fixed_tree tree_;
  Op op_;
  T* room_;
};

// One call on one rank. Part r of the vector, `part` elements, is rank r's to combine: it gets that part of
// everybody's nodes, of which a rank has at most `width`.
template <class T, class Op>
class fixed_tree_work {
  static_assert(alignof(T) <= exec::kept_memory::alignment,
                "collx: elements aligned to more than a cache line have no place here");

 public:
  fixed_tree_work(problem where, fixed_tree tree, T const* in, T* out, std::size_t count,
                  Op const& op) noexcept
      : where_(where),
        tree_(tree),
        in_(in),
        out_(out),
        count_(count),
        op_(op),
        width_(static_cast<std::size_t>(most_nodes(tree, where.size))),
        part_((count + ranks() - 1) / ranks()) {}

  // Bytes of memory that use() is to be given.
  [[nodiscard]] std::size_t bytes_needed() const noexcept {
    return rounded(tree_combiner<T, Op>::room(tree_)) + 2 * rounded(alone() ? 0 : ranks() * message());
  }
  void use(std::byte* memory) noexcept {
    room_ = reinterpret_cast<T*>(memory);
    sent_ = reinterpret_cast<T*>(memory += rounded(tree_combiner<T, Op>::room(tree_)));
    taken_ = reinterpret_cast<T*>(memory + rounded(ranks() * message()));
  }

  [[nodiscard]] bool alone() const noexcept { return where_.size == 1; }
  // Elements that every rank has for every other one, and then for all.
  [[nodiscard]] std::size_t message() const noexcept { return width_ * part_; }
  [[nodiscard]] std::size_t part() const noexcept { return part_; }
  [[nodiscard]] T* sent() const noexcept { return sent_; }
  [[nodiscard]] T* taken() const noexcept { return taken_; }
  [[nodiscard]] T* gathered() const noexcept { return straight() ? out_ : taken_; }

  // Before the first exchange: this rank's leaves to nodes; alone, that is all.
  void combine_leaves() const noexcept {
    if (alone()) return combine_leaves(0, count_, [&](std::int32_t) { return out_; });
    for (std::size_t r = 0; r < ranks(); ++r) {
      auto const [begin, n] = elements_of(r);
      auto const place = [&](std::int32_t k) {
        return sent_ + r * message() + static_cast<std::size_t>(k) * part_;
      };
      combine_leaves(begin, n, place);
      // The last parts are shorter. What fills them up is sent too, and must be something.
      for (std::int32_t k = 0; n < part_ && k < static_cast<std::int32_t>(width_); ++k)
        std::memset(static_cast<void*>(place(k) + n), 0, (part_ - n) * sizeof(T));
    }
  }
  // Between both: everybody's nodes of this rank's part to the root, which goes to the begin of sent(). Of
  // what only fills the part up op must see nothing: it may divide by it.
  void combine_nodes() const noexcept {
    auto const nodes = [&](auto const& visit) {
      for (rank_t r = 0; r < where_.size; ++r) {
        covering_nodes const theirs = nodes_of(tree_, tree_.share(r, where_.size));
        T const* const begin = taken_ + static_cast<std::size_t>(r) * message();
        for (std::int32_t k = 0; k < theirs.count(); ++k)
          visit(theirs[k], begin + static_cast<std::size_t>(k) * part_);
      }
    };
    std::size_t const mine = elements_of(static_cast<std::size_t>(where_.rank)).count;
    combiner().combine(mine, nodes, [&](std::int32_t) { return sent_; });
  }
  // Behind the second one.
  void deliver() const noexcept {
    if (!alone() && !straight()) device::copy_cached(out_, taken_, count_ * sizeof(T));
    if constexpr (requires(T total) { op_.finish(total, rank_t{}); }) {
      T const* const total = out_;
      T* const result = out_;
      device::combine(&result, 1, &total, 1, count_, op_, true, static_cast<rank_t>(tree_.leaves));
    }
  }

 private:
  // Of the vector, in a rank's part.
  [[nodiscard]] exec::extent elements_of(std::size_t rank) const noexcept {
    std::size_t const begin = rank * part_ < count_ ? rank * part_ : count_;
    return {begin, count_ - begin < part_ ? count_ - begin : part_};
  }
  [[nodiscard]] std::size_t ranks() const noexcept { return static_cast<std::size_t>(where_.size); }
  // Whether parts put together are the vector, without anything behind it.
  [[nodiscard]] bool straight() const noexcept { return part_ * ranks() == count_; }
  [[nodiscard]] static std::size_t rounded(std::size_t elements) noexcept {
    std::size_t const line = exec::kept_memory::alignment;
    return (elements * sizeof(T) + line - 1) / line * line;
  }
  [[nodiscard]] tree_combiner<T, Op> combiner() const noexcept { return {tree_, op_, room_}; }

  // `count` elements from `begin` on.
  template <class Result>
  void combine_leaves(std::size_t begin, std::size_t count, Result const& result) const noexcept {
    leaf_range const mine = tree_.share(where_.rank, where_.size);
    auto const leaves = [&](auto const& visit) {
      for (std::int32_t leaf = mine.begin; leaf < mine.end; ++leaf)
        visit({leaf, leaf + 1}, in_ + static_cast<std::size_t>(leaf - mine.begin) * count_ + begin);
    };
    combiner().combine(count, leaves, result);
  }

  problem where_;
  fixed_tree tree_;
  T const* in_;
  T* out_;
  std::size_t count_;
  Op op_;
  std::size_t width_, part_;
  T* room_ = nullptr;
  T* sent_ = nullptr;
  T* taken_ = nullptr;
};

}  // namespace collx::inline abi_1::detail
