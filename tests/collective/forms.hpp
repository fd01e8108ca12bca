// SPDX-License-Identifier: Apache-2.0
// Calls a collective that is known by its contract type, in each of the library's forms: so that the
// matrix of tests is written once for all of them.
#pragma once

#include "collective/oracle.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/all_to_all.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/exclusive_scan.hpp"
#include "collx/collective/gather.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/reduce_scatter.hpp"
#include "collx/collective/scan.hpp"
#include "collx/collective/scatter.hpp"

namespace forms {

using collx::rank_t;

// `result`: what calls return.
template <class Algorithm>
struct blocking {
  template <class>
  using result = void;
  static auto all_reduce(auto&... with) { return collx::all_reduce<Algorithm>(with...); }
  static auto reduce_scatter(auto&... with) { return collx::reduce_scatter<Algorithm>(with...); }
  static auto all_gather(auto&... with) { return collx::all_gather<Algorithm>(with...); }
  static auto all_to_all(auto&... with) { return collx::all_to_all<Algorithm>(with...); }
  static auto broadcast(auto&... with) { return collx::broadcast<Algorithm>(with...); }
  static auto reduce(auto&... with) { return collx::reduce<Algorithm>(with...); }
  static auto gather(auto&... with) { return collx::gather<Algorithm>(with...); }
  static auto scatter(auto&... with) { return collx::scatter<Algorithm>(with...); }
  static auto scan(auto&... with) { return collx::scan<Algorithm>(with...); }
  static auto exclusive_scan(auto&... with) { return collx::exclusive_scan<Algorithm>(with...); }
  static auto barrier(auto&... with) { return collx::barrier<Algorithm>(with...); }
};

template <class Algorithm>
struct started {
  template <class Transport>
  using result = collx::request<typename Transport::endpoint>;
  static auto all_reduce(auto&... with) { return collx::start::all_reduce<Algorithm>(with...); }
  static auto reduce_scatter(auto&... with) { return collx::start::reduce_scatter<Algorithm>(with...); }
  static auto all_gather(auto&... with) { return collx::start::all_gather<Algorithm>(with...); }
  static auto all_to_all(auto&... with) { return collx::start::all_to_all<Algorithm>(with...); }
  static auto broadcast(auto&... with) { return collx::start::broadcast<Algorithm>(with...); }
  static auto reduce(auto&... with) { return collx::start::reduce<Algorithm>(with...); }
  static auto gather(auto&... with) { return collx::start::gather<Algorithm>(with...); }
  static auto scatter(auto&... with) { return collx::start::scatter<Algorithm>(with...); }
  static auto scan(auto&... with) { return collx::start::scan<Algorithm>(with...); }
  static auto exclusive_scan(auto&... with) { return collx::start::exclusive_scan<Algorithm>(with...); }
  static auto barrier(auto&... with) { return collx::start::barrier<Algorithm>(with...); }
};

template <class Algorithm>
struct tried {
  template <class>
  using result = collx::status;
  static auto all_reduce(auto&... with) { return collx::try_all_reduce<Algorithm>(with...); }
  static auto reduce_scatter(auto&... with) { return collx::try_reduce_scatter<Algorithm>(with...); }
  static auto all_gather(auto&... with) { return collx::try_all_gather<Algorithm>(with...); }
  static auto all_to_all(auto&... with) { return collx::try_all_to_all<Algorithm>(with...); }
  static auto broadcast(auto&... with) { return collx::try_broadcast<Algorithm>(with...); }
  static auto reduce(auto&... with) { return collx::try_reduce<Algorithm>(with...); }
  static auto gather(auto&... with) { return collx::try_gather<Algorithm>(with...); }
  static auto scatter(auto&... with) { return collx::try_scatter<Algorithm>(with...); }
  static auto scan(auto&... with) { return collx::try_scan<Algorithm>(with...); }
  static auto exclusive_scan(auto&... with) { return collx::try_exclusive_scan<Algorithm>(with...); }
  static auto barrier(auto&... with) { return collx::try_barrier<Algorithm>(with...); }
};

// `Form`: blocking<A>, started<A> or tried<A>. in, out: separate spans as the contract sizes them on this
// rank. Returns what the form returns.
template <class Form, class Contract>
auto apply_apart(auto& comm, [[maybe_unused]] rank_t root, [[maybe_unused]] auto in,
                 [[maybe_unused]] auto out, [[maybe_unused]] auto const& op) {
  namespace contract = collx::contract;
  if constexpr (std::is_same_v<Contract, contract::all_reduce>) return Form::all_reduce(comm, in, out, op);
  else if constexpr (std::is_same_v<Contract, contract::scan>) return Form::scan(comm, in, out, op);
  else if constexpr (std::is_same_v<Contract, contract::exclusive_scan>)
    return Form::exclusive_scan(comm, in, out, op);
  else if constexpr (std::is_same_v<Contract, contract::all_to_all>) return Form::all_to_all(comm, in, out);
  else if constexpr (std::is_same_v<Contract, contract::gather>) return Form::gather(comm, in, out, root);
  else if constexpr (std::is_same_v<Contract, contract::barrier>) return Form::barrier(comm);
  else if constexpr (std::is_same_v<Contract, contract::scatter>) return Form::scatter(comm, in, out, root);
  else if constexpr (std::is_same_v<Contract, contract::reduce_scatter>)
    return Form::reduce_scatter(comm, in, out, op);
  else if constexpr (std::is_same_v<Contract, contract::all_gather>) return Form::all_gather(comm, in, out);
  else if constexpr (std::is_same_v<Contract, contract::broadcast>)
    return Form::broadcast(comm, in, out, root);
  else {
    static_assert(std::is_same_v<Contract, contract::reduce>);
    return Form::reduce(comm, in, out, op, root);
  }
}

// The same, or in place: with `out` alone where the collective has such a form.
template <class Form, class Contract>
auto apply(auto& comm, rank_t root, [[maybe_unused]] bool in_place, auto in, auto out, auto const& op) {
  namespace contract = collx::contract;
  if constexpr (std::is_same_v<Contract, contract::all_reduce>) {
    if (in_place) return Form::all_reduce(comm, out, op);
  } else if constexpr (std::is_same_v<Contract, contract::scan>) {
    if (in_place) return Form::scan(comm, out, op);
  } else if constexpr (std::is_same_v<Contract, contract::exclusive_scan>) {
    if (in_place) return Form::exclusive_scan(comm, out, op);
  } else if constexpr (std::is_same_v<Contract, contract::all_to_all>) {
    if (in_place) return Form::all_to_all(comm, out);
  } else if constexpr (std::is_same_v<Contract, contract::broadcast>) {
    if (in_place) return Form::broadcast(comm, out, root);
  } else if constexpr (std::is_same_v<Contract, contract::reduce>) {
    if (in_place) return Form::reduce(comm, out, op, root);
  }
  return apply_apart<Form, Contract>(comm, root, in, out, op);
}

// The same with the buffers of a participant.
template <class Form, class Contract, class Transport, class Op>
auto call(collx::communicator<Transport>& comm, oracle::setting const& how, oracle::participant const& with,
          Op const& op) {
  return apply<Form, Contract>(comm, how.root, how.in_place, with.in(), with.out(), op);
}

// And with the begin of buffers that are large enough for everything.
template <class Form, class Contract, class Transport, class T>
auto call_with(collx::communicator<Transport>& comm, rank_t root, std::size_t count, std::span<T> in,
               std::span<T> out, auto const& op) {
  collx::problem const p{comm.rank(), comm.size(), root};
  auto const length = [&](collx::block_window const& window) {
    return static_cast<std::size_t>(Contract::sharded ? window.count : 1) * count;
  };
  return apply_apart<Form, Contract>(comm, root, std::span<T const>(in.first(length(Contract::input(p)))),
                                     out.first(length(Contract::output(p))), op);
}

}  // namespace forms
