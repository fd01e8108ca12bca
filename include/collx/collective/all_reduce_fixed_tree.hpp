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
// Works in about 2 W M bytes, allocated by the first call that needs so much and kept for the next one
// until the communicator ends; as much again for every further one in flight. in and out must not overlap.
//
//   auto request = start::all_reduce_fixed_tree(comm, tree, in, out, op)
//   auto again = persistent::all_reduce_fixed_tree(comm, tree, in, out, op)
//
// The first combines leaves at once, nodes when they have come, and returns a request with the members of
// `request`; the second is started as often as wanted, as a persistent_collective, and keeps its memory.
// Errors as for all_reduce (all_reduce.hpp), and out_of_memory.
#pragma once

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/fixed_tree_work.hpp"
#include "collx/collective/two_moves.hpp"

namespace collx::inline abi_1 {

namespace detail {

// The two exchanges, under the name that the user called.
struct fixed_tree_exchange : contract::all_to_all {
  static constexpr char const* name = "all_reduce_fixed_tree";
};
struct fixed_tree_gather : contract::all_gather {
  static constexpr char const* name = "all_reduce_fixed_tree";
};

// Both exchanges, and what is around them (two_moves.hpp).
template <class T, class Op>
class fixed_tree_moves : public fixed_tree_work<T, Op> {
  using work = fixed_tree_work<T, Op>;

 public:
  static constexpr char const* name = "all_reduce_fixed_tree";
  static constexpr char const* no_memory =
      "all_reduce_fixed_tree: no memory for the nodes of the tree; reduce fewer elements at a time, or let "
      "the "
      "number of ranks divide that of leaves";

  fixed_tree_moves(exec::standing const& at, fixed_tree tree, T const* in, T* out, std::size_t count,
                   Op const& op) noexcept
      : work(at.where, tree, in, out, count, op), at_(at) {}

  [[nodiscard]] auto first() const noexcept {
    return bind<fixed_tree_exchange>(work::sent(), work::taken(), work::message());
  }
  [[nodiscard]] auto second() const noexcept {
    return bind<fixed_tree_gather>(work::sent(), work::gathered(), work::part());
  }
  void before() const noexcept { work::combine_leaves(); }
  void between() const noexcept {
    if (!work::alone()) work::combine_nodes();
  }
  void after() const noexcept { work::deliver(); }

 private:
  // A rank alone has all leaves, and nothing to exchange.
  template <class Contract>
  [[nodiscard]] auto bind(T const* from, T* to, std::size_t count) const noexcept {
    invocation<Contract, T, unreduced> args{from, to, work::alone() ? 0 : count, 0, {}};
    args.at = at_;
    return args;
  }

  exec::standing at_;
};

template <class T, class Op, class Endpoint>
[[nodiscard]] status run_fixed_tree(exec::engine<Endpoint>& engine,
                                    fixed_tree_moves<T, Op> const& moves) noexcept {
  moves.before();
  if (!moves.alone()) {
    if (status const outcome = run<automatic>(engine, moves.first()); outcome != status::ok) return outcome;
    moves.between();
    if (status const outcome = run<automatic>(engine, moves.second()); outcome != status::ok) return outcome;
  }
  moves.after();
  return engine.failure().code;
}

// Only for its checks: nothing is sent by it.
template <class In, class Out, class Op>
[[nodiscard]] auto bind_fixed_tree(problem p, fixed_tree tree, In& in, Out& out, Op const& op) noexcept {
  static_assert(!prepares<Op, element_t<Out>>,
                "collx: an operator that prepares the contribution of a rank gives other sums for other "
                "numbers of ranks; prepare the leaves yourself");
  auto args = bind_reduction<fixed_tree_exchange>(in, out, op);
  if (tree.leaves < 1 || tree.leaves > fixed_tree::leaves_max) {
    args.refuse("a fixed tree has 1 to 2^24 leaves", static_cast<std::int64_t>(tree.leaves), said_already);
    return args;
  }
  args.count = out.size();
  auto const mine = static_cast<std::size_t>(tree.share(p.rank, p.size).count());
  // Of all leaves, so that every rank refuses what one does.
  args.refuse_if_absurd(args.count, static_cast<std::size_t>(tree.leaves));
  args.require_memory(null_input, args.input, mine * args.count);
  args.require_memory(null_output, args.output, args.count);
  args.require_count("the input must hold out.size() elements of each leaf of tree.share(rank, size)",
                     in.size(), mine * out.size());
  args.refuse_any_overlap(in.size(), out.size());
  return args;
}

template <class In, class Out, class Op>
void check_fixed_tree(problem p, fixed_tree tree, In& in, Out& out, Op const& op) {
  auto const args = bind_fixed_tree(p, tree, in, out, op);
  if (args.fault != nullptr)
    throw_wrong_argument("all_reduce_fixed_tree", p, args.fault, args.given, args.needed);
}

// What ranks compare where they check their calls (agreement.hpp): what the user said, which neither of the
// exchanges shows.
template <class T, class Op>
[[nodiscard]] exec::call describe_fixed_tree(exec::standing const& at, fixed_tree tree, std::size_t count,
                                             char const* form) noexcept {
  return {.collective = fixed_tree_moves<T, Op>::name,
          .op = name_of_operator<Op>(),
          .form = form,
          .element_type = &element_kind_of<T>,
          .op_type = type_number<Op>(),
          .count = count,
          .root = tree.leaves,
          .at = at,
          .root_is = "number of leaves"};
}

template <class Endpoint>
[[nodiscard]] status agree_on(exec::engine<Endpoint>& engine, exec::call const& what) noexcept {
  bool const compares = engine.checker() != nullptr && what.at.where.size > 1;
  return compares ? engine.checker()(engine, what) : status::ok;
}

// Started, or to be started: `Started` is a request_of_two or persistent_of_two.
template <template <class, class> class Started, class Transport, class In, class Out, class Op>
[[nodiscard]] auto start_fixed_tree(communicator<Transport>& comm, fixed_tree tree, In& in, Out& out,
                                    Op const& op, priority how, char const* form) {
  check_fixed_tree(where(comm), tree, in, out, op);
  using T = element_t<Out>;
  using moves = fixed_tree_moves<T, std::decay_t<Op>>;  // of a function, a pointer to it
  auto const what = describe_fixed_tree<T, std::decay_t<Op>>(comm.standing(), tree, out.size(), form);
  if (agree_on(comm.engine(), what) != status::ok) throw error(comm.failure());
  return Started<moves, typename Transport::endpoint>(
      comm.engine(), moves(comm.standing(), tree, in.data(), out.data(), out.size(), op), how,
      std::type_identity<automatic>());
}

}  // namespace detail

// The same, with the status returned.
template <class Transport, buffer_like In, buffer_like Out, class Op = sum_t>
[[nodiscard]] status try_all_reduce_fixed_tree(communicator<Transport>& comm, fixed_tree tree, In&& in,
                                               Out&& out, Op const& op = {}) {
  auto const args = detail::bind_fixed_tree(detail::where(comm), tree, in, out, op);
  if (args.fault != nullptr) return status::bad_argument;
  using T = element_t<std::remove_reference_t<Out>>;
  using function = std::decay_t<Op>;
  auto& engine = comm.engine();
  auto const what = detail::describe_fixed_tree<T, function>(comm.standing(), tree, args.count, "blocking");
  if (status const agreed = detail::agree_on(engine, what); agreed != status::ok) return agreed;
  if (args.count == 0) return comm.failure().code;
  detail::fixed_tree_moves<T, function> moves(comm.standing(), tree, args.input, args.output, args.count, op);
  std::byte* memory = nullptr;
  try {
    memory = engine.memory().take(moves.bytes_needed());
  } catch (std::bad_alloc const&) {
    engine.record(status::out_of_memory, engine.report_for(what), {},
                  false);  // the others wait for this rank
    return status::out_of_memory;
  }
  moves.use(memory);
  status const outcome = detail::run_fixed_tree(engine, moves);
  engine.memory().give(memory);
  return outcome;
}

template <class Transport, buffer_like In, buffer_like Out, class Op = sum_t>
void all_reduce_fixed_tree(communicator<Transport>& comm, fixed_tree tree, In&& in, Out&& out,
                           Op const& op = {}) {
  detail::check_fixed_tree(detail::where(comm), tree, in, out, op);
  status const outcome = try_all_reduce_fixed_tree(comm, tree, in, out, op);
  if (outcome == status::not_supported)
    detail::throw_not_runnable("all_reduce_fixed_tree", detail::where(comm), sizeof(element_t<Out>),
                               comm.engine().endpoint().depth());
  if (outcome == status::out_of_memory)
    throw error(outcome, detail::fixed_tree_moves<element_t<Out>, std::decay_t<Op>>::no_memory);
  if (outcome != status::ok) throw error(comm.failure());
}

namespace start {

template <priority How = priority::normal, class Transport, buffer_like In, buffer_like Out, class Op = sum_t>
[[nodiscard]] auto all_reduce_fixed_tree(communicator<Transport>& comm, fixed_tree tree, In&& in, Out&& out,
                                         Op const& op = {}) {
  COLLX_DETAIL_REQUIRE_BUFFERS_THAT_STAY(In, Out);
  return detail::start_fixed_tree<request_of_two>(comm, tree, in, out, op, How, detail::name_of_started(How));
}

}  // namespace start

namespace persistent {

template <priority How = priority::normal, class Transport, buffer_like In, buffer_like Out, class Op = sum_t>
[[nodiscard]] auto all_reduce_fixed_tree(communicator<Transport>& comm, fixed_tree tree, In&& in, Out&& out,
                                         Op const& op = {}) {
  COLLX_DETAIL_REQUIRE_BUFFERS_THAT_STAY(In, Out);
  return detail::start_fixed_tree<persistent_of_two>(comm, tree, in, out, op, How,
                                                     detail::name_of_persistent(How));
}

}  // namespace persistent

}  // namespace collx::inline abi_1
