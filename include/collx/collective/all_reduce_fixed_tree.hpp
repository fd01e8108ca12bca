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
// Works in about (2 W + 1) M bytes, allocated by the first call that needs so much and kept for the next one
// until the communicator ends; as much again for every further one in flight. in and out must not overlap.
//
//   auto request = start::all_reduce_fixed_tree(comm, tree, in, out, op)
//
// combines leaves at once, nodes when they have come, and returns a request with the members of `request`.
// Errors as for all_reduce (all_reduce.hpp), and out_of_memory.
#pragma once

#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/fixed_tree_work.hpp"

namespace collx::inline abi_1 {

namespace detail {

// The two exchanges, under the name that the user called.
struct fixed_tree_exchange : contract::all_to_all {
  static constexpr char const* name = "all_reduce_fixed_tree";
};
struct fixed_tree_gather : contract::all_gather {
  static constexpr char const* name = "all_reduce_fixed_tree";
};

template <class Contract, class T>
[[nodiscard]] auto bind_tree_move(exec::standing const& at, T const* from, T* to,
                                  std::size_t count) noexcept {
  invocation<Contract, T, unreduced> args{from, to, count, 0, {}};
  args.at = at;
  return args;
}

template <class T, class Op, class Endpoint>
[[nodiscard]] status run_fixed_tree(exec::engine<Endpoint>& engine, exec::standing const& at,
                                    fixed_tree_work<T, Op> const& work) noexcept {
  work.combine_leaves();
  if (!work.alone()) {
    auto const out = bind_tree_move<fixed_tree_exchange>(at, work.sent(), work.taken(), work.message());
    if (status const outcome = run<automatic>(engine, out); outcome != status::ok) return outcome;
    work.combine_nodes();
    auto const back = bind_tree_move<fixed_tree_gather>(at, work.sent(), work.gathered(), work.part());
    if (status const outcome = run<automatic>(engine, back); outcome != status::ok) return outcome;
  }
  work.deliver();
  return engine.failure().code;
}

// Starts one of the exchanges; before() is called when it begins.
template <class Contract, class T, class Endpoint, class Before>
[[nodiscard]] exec::ticket start_tree_move(exec::engine<Endpoint>& engine,
                                           invocation<Contract, T, unreduced> const& args, priority how,
                                           exec::ticket const* behind, Before const& before) {
  auto const start = [&]<class Chosen>() {
    using S = schedule_for<Contract, Chosen>;
    if (!can_run<S, T>(engine.endpoint(), args.at.where.shape()))
      throw_not_runnable(Contract::name, args.at.where, sizeof(T), engine.endpoint().depth());
    exec::scheduled_call const call = scheduled(choice_of<Chosen, Contract, T, unreduced>(), args);
    // By value: it is called when the lane is free.
    auto const make = [kept = kept_call<unreduced, Endpoint>(engine, call, args.op),
                       before](int lane) noexcept {
      before();
      return kept(lane);
    };
    return engine.start(call.what, make, how, behind);
  };
  return with_algorithm<automatic>(engine, args, start, [] { return exec::ticket{}; });
}

// A started all_reduce_fixed_tree: two requests on one lane, both started at once, so that it is the same
// requests in the same order on every rank. What is between them is done when the second one begins.
template <class T, class Op, class Endpoint>
class fixed_tree_request {
  using work_type = fixed_tree_work<T, Op>;

 public:
  fixed_tree_request() = default;
  fixed_tree_request(exec::engine<Endpoint>& engine, exec::standing const& at, work_type const& work,
                     priority how)
      : engine_(&engine) {
    std::size_t const own = (sizeof(work_type) + alignment - 1) / alignment * alignment;
    memory_ = engine.memory().take(own + work.bytes_needed());
    // With its memory, so that it stays where it is when this is moved.
    work_ = ::new (static_cast<void*>(memory_)) work_type(work);
    work_->use(memory_ + own);
    work_->combine_leaves();
    if (!work_->alone()) start(at, how);
  }
  fixed_tree_request(fixed_tree_request&& other) noexcept { swap(other); }
  fixed_tree_request& operator=(fixed_tree_request&& other) noexcept {
    swap(other);
    return *this;
  }
  ~fixed_tree_request() { (void)try_wait(); }

  [[nodiscard]] bool test() {
    status const outcome = try_test();
    if (outcome != status::ok && outcome != status::pending) throw error(engine_->failure());
    return outcome == status::ok;
  }
  void wait() {
    if (try_wait() != status::ok) throw error(engine_->failure());
  }
  [[nodiscard]] status try_test() noexcept {
    status const outcome = second_.try_test();
    return outcome == status::pending ? outcome : finish(outcome);
  }
  [[nodiscard]] status try_wait() noexcept { return finish(second_.try_wait()); }

 private:
  static constexpr std::size_t alignment = exec::kept_memory::alignment;
  static_assert(alignof(work_type) <= alignment && alignof(T) <= alignment,
                "collx: elements aligned to more than a cache line have no place here");

  void start(exec::standing const& at, priority how) try {
    exec::engine<Endpoint>& engine = *engine_;
    work_type const* const work = work_;
    auto const out = bind_tree_move<fixed_tree_exchange>(at, work->sent(), work->taken(), work->message());
    if (engine.checker() != nullptr && engine.checker()(engine, describe(out, automatic::name)) != status::ok)
      throw error(engine.failure());
    exec::ticket const first = start_tree_move(engine, out, how, nullptr, [] {});
    first_ = request<Endpoint>(engine, first);
    auto const back = bind_tree_move<fixed_tree_gather>(at, work->sent(), work->gathered(), work->part());
    second_ = request<Endpoint>(engine, start_tree_move(engine, back, how, &first, [&engine, work] {
                                  if (engine.failure().code == status::ok) work->combine_nodes();
                                }));
  } catch (...) {
    (void)first_.try_wait();
    engine_->memory().give(memory_);
    throw;
  }

  status finish(status outcome) noexcept {
    if (work_ == nullptr) return outcome;
    status const first = first_.try_wait();  // ended before the second one began
    if (outcome == status::ok) outcome = first;
    if (outcome == status::ok) work_->deliver();
    work_ = nullptr;
    engine_->memory().give(memory_);
    return outcome;
  }

  void swap(fixed_tree_request& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(memory_, other.memory_);
    std::swap(work_, other.work_);
    std::swap(first_, other.first_);
    std::swap(second_, other.second_);
  }

  exec::engine<Endpoint>* engine_ = nullptr;
  std::byte* memory_ = nullptr;
  work_type* work_ = nullptr;  // null: done
  request<Endpoint> first_, second_;
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
  // Of all leaves, so that every rank refuses what one does.
  args.refuse_if_absurd(args.count, static_cast<std::size_t>(tree.leaves));
  args.require_memory(null_input, args.input, mine * args.count);
  args.require_memory(null_output, args.output, args.count);
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
  detail::fixed_tree_work<T, Op> work(detail::where(comm), tree, args.input, args.output, args.count, op);
  auto& engine = comm.engine();
  std::byte* memory = nullptr;
  try {
    memory = engine.memory().take(work.bytes_needed());
  } catch (std::bad_alloc const&) {
    comm.abort();  // the others wait for this rank
    return status::out_of_memory;
  }
  work.use(memory);
  status const outcome = detail::run_fixed_tree(engine, comm.standing(), work);
  engine.memory().give(memory);
  return outcome;
}

namespace detail {
inline constexpr char const* no_memory_for_tree =
    "all_reduce_fixed_tree: no memory for the nodes of the tree; reduce fewer elements at a time, or let the "
    "number of ranks divide that of leaves";
}

template <class Transport, buffer_like In, buffer_like Out, class Op = sum_t>
void all_reduce_fixed_tree(communicator<Transport>& comm, fixed_tree tree, In&& in, Out&& out,
                           Op const& op = {}) {
  auto const args = detail::bind_fixed_tree(detail::where(comm), tree, in, out, op);
  if (args.fault != nullptr)
    detail::throw_wrong_argument("all_reduce_fixed_tree", detail::where(comm), args.fault, args.given,
                                 args.needed);
  status const outcome = try_all_reduce_fixed_tree(comm, tree, in, out, op);
  if (outcome == status::not_supported)
    detail::throw_not_runnable("all_reduce_fixed_tree", detail::where(comm), sizeof(element_t<Out>),
                               comm.engine().endpoint().depth());
  if (outcome == status::out_of_memory) throw error(outcome, detail::no_memory_for_tree);
  if (outcome != status::ok) throw error(comm.failure());
}

namespace start {

template <priority How = priority::normal, class Transport, buffer_like In, class Out, class Op = sum_t>
  requires buffer_like<std::remove_reference_t<Out>>
[[nodiscard]] auto all_reduce_fixed_tree(communicator<Transport>& comm, fixed_tree tree, In const& in,
                                         Out&& out, Op const& op = {}) {
  auto const args = detail::bind_fixed_tree(detail::where(comm), tree, in, out, op);
  if (args.fault != nullptr)
    detail::throw_wrong_argument("all_reduce_fixed_tree", detail::where(comm), args.fault, args.given,
                                 args.needed);
  using T = element_t<std::remove_reference_t<Out>>;
  using request_type = detail::fixed_tree_request<T, Op, typename Transport::endpoint>;
  if (args.count == 0) return request_type();
  try {
    detail::fixed_tree_work<T, Op> const work(detail::where(comm), tree, args.input, args.output, args.count,
                                              op);
    return request_type(comm.engine(), comm.standing(), work, How);
  } catch (std::bad_alloc const&) {
    comm.abort();  // the others wait for this rank
    throw error(status::out_of_memory, detail::no_memory_for_tree);
  }
}

}  // namespace start

}  // namespace collx::inline abi_1
