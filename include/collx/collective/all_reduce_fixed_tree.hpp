// SPDX-License-Identifier: Apache-2.0
// all_reduce with the same bits for every number of ranks: reproducibility::any_size, for any operator.
//
//   all_reduce_fixed_tree(comm, fixed_tree{leaves}, in, out, op)     op defaults to sum
//   out[i] = leaf_0[i] op leaf_1[i] op ... op leaf_{V-1}[i]          on every rank
//
// What is combined are V leaves, vectors of out.size() elements each, that belong to the problem and not to
// ranks: micro-batches, cells, particles of a domain. Rank r holds the leaves tree.share(r, size), one
// behind the other in `in`. Brackets are those of the tree (algo/fixed_tree.hpp), each node is rounded to
// the element type, and no order is ever changed, so op need neither commute nor be associative. finish()
// is called with the number of leaves: avg divides by it.
//
// Every rank combines its leaves to nodes; rank r gets part r of everybody's nodes (an all_to_all), goes on
// to the root, and gives everybody the result (an all_gather). For n ranks, M bytes of output and W nodes
// of the rank that has most (1 if n divides V and V/n is a power of two, else up to 2 log2 V):
//   2 rounds, (W + 1) (n-1)/n M bytes sent per rank
// Allocates about (2 W + 1) M bytes for the time of the call. in and out must not overlap.
// Blocking only. Errors as for all_reduce (all_reduce.hpp), and out_of_memory.
#pragma once

#include <new>

#include "collx/algo/fixed_tree.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_to_all.hpp"

namespace collx::inline abi_1 {

namespace detail {

// The two exchanges, under the name that the user called.
struct fixed_tree_exchange : contract::all_to_all {
  static constexpr char const* name = "all_reduce_fixed_tree";
};
struct fixed_tree_gather : contract::all_gather {
  static constexpr char const* name = "all_reduce_fixed_tree";
};

// Combines vectors that are nodes of a tree, in order, as far as they go. A block of elements at a time,
// so that what is not finished stays in the cache.
template <class T, class Op>
class tree_combiner {
 public:
  tree_combiner(fixed_tree tree, Op const& op)
      : tree_(tree), op_(op), room_(block * static_cast<std::size_t>(covering_nodes::most(tree))) {}

  // source(f): calls f(node, data) for each node from left to right, with data of `count` elements.
  // result(k): where the k-th of the nodes that remain is to go.
  template <class Source, class Result>
  void combine(std::size_t count, Source const& source, Result const& result) {
    for (std::size_t at = 0; at < count; at += block) {
      std::size_t const n = count - at < block ? count - at : block;
      covering_nodes nodes(tree_);
      T const* values[covering_nodes::count_max];
      source([&](leaf_range node, T const* data) {
        values[nodes.count()] = data + at;
        for (std::int32_t left = nodes.add(node), k = nodes.count() + left - 2; left > 0; --left, --k) {
          T* const sum = room_.data() + static_cast<std::size_t>(k) * block;
          device::combine(&sum, 1, &values[k], 2, n, op_, false, rank_t{1});
          values[k] = sum;
        }
      });
      for (std::int32_t k = 0; k < nodes.count(); ++k)
        std::memcpy(static_cast<void*>(result(k) + at), values[k], n * sizeof(T));
    }
  }

 private:
  static constexpr std::size_t block = sizeof(T) >= 4096 ? 1 : 4096 / sizeof(T);

  fixed_tree tree_;
  Op const& op_;
  array<T> room_;
};

template <class T, class Op, class Transport>
class fixed_tree_call {
 public:
  fixed_tree_call(communicator<Transport>& comm, fixed_tree tree, T const* in, T* out, std::size_t count,
                  Op const& op)
      : comm_(comm),
        tree_(tree),
        in_(in),
        out_(out),
        count_(count),
        op_(op),
        combiner_(tree, op),
        width_(static_cast<std::size_t>(most_nodes(tree, size()))),
        part_((count + ranks() - 1) / ranks()) {}

  [[nodiscard]] status run() {
    if (size() == 1) {
      combine_leaves(0, count_, [&](std::int32_t) { return out_; });
    } else if (status const outcome = exchange(); outcome != status::ok) {
      return outcome;
    }
    if constexpr (requires(T total) { op_.finish(total, rank_t{}); }) {
      T const* const total = out_;
      device::combine(&out_, 1, &total, 1, count_, op_, true, static_cast<rank_t>(tree_.leaves));
    }
    return status::ok;
  }

 private:
  [[nodiscard]] rank_t size() const { return comm_.size(); }
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(size()); }

  // This rank's leaves to nodes, `count` elements from `begin` on.
  template <class Result>
  void combine_leaves(std::size_t begin, std::size_t count, Result const& result) {
    leaf_range const mine = tree_.share(comm_.rank(), size());
    auto const leaves = [&](auto const& visit) {
      for (std::int32_t leaf = mine.begin; leaf < mine.end; ++leaf)
        visit({leaf, leaf + 1}, in_ + static_cast<std::size_t>(leaf - mine.begin) * count_ + begin);
    };
    combiner_.combine(count, leaves, result);
  }

  // Part r of the vector goes to rank r: `part_` elements of each of `width_` nodes.
  [[nodiscard]] status exchange() {
    std::size_t const message = width_ * part_;
    array<T> sent(ranks() * message), taken(ranks() * message);
    for (std::size_t r = 0; r < ranks() && r * part_ < count_; ++r) {
      std::size_t const begin = r * part_, n = count_ - begin < part_ ? count_ - begin : part_;
      auto const place = [&](std::int32_t k) {
        return sent.data() + r * message + static_cast<std::size_t>(k) * part_;
      };
      combine_leaves(begin, n, place);
    }
    if (status const outcome = move<fixed_tree_exchange>(sent.data(), taken.data(), message);
        outcome != status::ok)
      return outcome;

    auto const nodes = [&](auto const& visit) {
      for (rank_t r = 0; r < size(); ++r) {
        covering_nodes const theirs = nodes_of(tree_, tree_.share(r, size()));
        T const* const begin = taken.data() + static_cast<std::size_t>(r) * message;
        for (std::int32_t k = 0; k < theirs.count(); ++k)
          visit(theirs[k], begin + static_cast<std::size_t>(k) * part_);
      }
    };
    // `sent` is free again: results go to its begin, everybody's behind that.
    combiner_.combine(part_, nodes, [&](std::int32_t) { return sent.data(); });
    bool const straight = part_ * ranks() == count_;
    status const outcome = move<fixed_tree_gather>(sent.data(), straight ? out_ : taken.data(), part_);
    if (outcome == status::ok && !straight)
      std::memcpy(static_cast<void*>(out_), taken.data(), count_ * sizeof(T));
    return outcome;
  }

  template <class Contract>
  [[nodiscard]] status move(T const* from, T* to, std::size_t count) noexcept {
    invocation<Contract, T, unreduced> args{};
    args.input = from;
    args.output = to;
    args.count = count;
    return detail::run<automatic>(comm_.engine(), called_on(comm_, args));
  }

  communicator<Transport>& comm_;
  fixed_tree tree_;
  T const* in_;
  T* out_;
  std::size_t count_;
  Op const& op_;
  tree_combiner<T, Op> combiner_;
  std::size_t width_, part_;
};

// Only for its checks: nothing is sent by it.
template <class In, class Out, class Op>
[[nodiscard]] auto bind_fixed_tree(problem p, fixed_tree tree, In& in, Out& out, Op const& op) noexcept {
  static_assert(!prepares<Op, element_t<Out>>,
                "collx: an operator that prepares the contribution of a rank gives other sums for other "
                "numbers of ranks; prepare the leaves yourself");
  auto args = bind_reduction<fixed_tree_exchange>(in, out, op);
  if (tree.leaves < 1 || tree.leaves > fixed_tree::leaves_max) {
    args.refuse("a fixed tree has 1 to 2^24 leaves", tree.leaves, fixed_tree::leaves_max);
    return args;
  }
  args.count = out.size();
  auto const mine = static_cast<std::size_t>(tree.share(p.rank, p.size).count());
  args.require_count("the input must hold out.size() elements of each leaf of tree.share(rank, size)",
                     in.size(), mine * out.size());
  args.refuse_any_overlap(in.size(), out.size());
  return args;
}

}  // namespace detail

// The same, with the status returned.
template <class Transport, buffer_like In, buffer_like Out, class Op = sum_t>
[[nodiscard]] status try_all_reduce_fixed_tree(communicator<Transport>& comm, fixed_tree tree, In&& in,
                                               Out&& out, Op const& op = {}) {
  auto const args = detail::bind_fixed_tree(detail::where(comm), tree, in, out, op);
  if (args.fault != nullptr) return status::bad_argument;
  if (args.count == 0) return comm.failure().code;
  using T = element_t<std::remove_reference_t<Out>>;
  try {
    detail::fixed_tree_call<T, Op, Transport> call(comm, tree, args.input, args.output, args.count, op);
    return call.run();
  } catch (std::bad_alloc const&) {
    comm.abort();  // the others wait for this rank
    return status::out_of_memory;
  }
}

template <class Transport, buffer_like In, buffer_like Out, class Op = sum_t>
void all_reduce_fixed_tree(communicator<Transport>& comm, fixed_tree tree, In&& in, Out&& out,
                           Op const& op = {}) {
  auto const args = detail::bind_fixed_tree(detail::where(comm), tree, in, out, op);
  if (args.fault != nullptr)
    detail::throw_refusal("all_reduce_fixed_tree", args.fault, args.given, args.needed);
  status const outcome = try_all_reduce_fixed_tree(comm, tree, in, out, op);
  if (outcome == status::not_supported)
    detail::throw_unsupported("all_reduce_fixed_tree", comm.size(), sizeof(element_t<Out>),
                              comm.engine().endpoint().depth());
  if (outcome == status::out_of_memory)
    throw error(outcome,
                "all_reduce_fixed_tree: no memory for the nodes of the tree; reduce fewer elements at a "
                "time, or let the number of ranks divide that of leaves");
  if (outcome != status::ok) throw error(comm.failure());
}

}  // namespace collx::inline abi_1
