// SPDX-License-Identifier: Apache-2.0
// Calls a collective that is known by its contract type, in each of the library's forms: so that the
// matrix of tests is written once for all of them.
#pragma once

#include "collective/oracle.hpp"
#include "collx/collective/all_gather.hpp"
#include "collx/collective/all_reduce.hpp"
#include "collx/collective/barrier.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/collective/reduce.hpp"
#include "collx/collective/reduce_scatter.hpp"

namespace forms {

template <class Algorithm>
struct blocking {
  static void all_reduce(auto&... arguments) { collx::all_reduce<Algorithm>(arguments...); }
  static void reduce_scatter(auto&... arguments) { collx::reduce_scatter<Algorithm>(arguments...); }
  static void all_gather(auto&... arguments) { collx::all_gather<Algorithm>(arguments...); }
  static void broadcast(auto&... arguments) { collx::broadcast<Algorithm>(arguments...); }
  static void reduce(auto&... arguments) { collx::reduce<Algorithm>(arguments...); }
};

template <class Algorithm>
struct started {
  static auto all_reduce(auto&... arguments) { return collx::start::all_reduce<Algorithm>(arguments...); }
  static auto reduce_scatter(auto&... arguments) {
    return collx::start::reduce_scatter<Algorithm>(arguments...);
  }
  static auto all_gather(auto&... arguments) { return collx::start::all_gather<Algorithm>(arguments...); }
  static auto broadcast(auto&... arguments) { return collx::start::broadcast<Algorithm>(arguments...); }
  static auto reduce(auto&... arguments) { return collx::start::reduce<Algorithm>(arguments...); }
};

template <class Algorithm>
struct tried {
  static auto all_reduce(auto&... arguments) { return collx::try_all_reduce<Algorithm>(arguments...); }
  static auto reduce_scatter(auto&... arguments) {
    return collx::try_reduce_scatter<Algorithm>(arguments...);
  }
  static auto all_gather(auto&... arguments) { return collx::try_all_gather<Algorithm>(arguments...); }
  static auto broadcast(auto&... arguments) { return collx::try_broadcast<Algorithm>(arguments...); }
  static auto reduce(auto&... arguments) { return collx::try_reduce<Algorithm>(arguments...); }
};

// `Form`: blocking<A>, started<A> or tried<A>. Returns what the form returns.
template <class Form, class Contract, class Transport, class Op>
auto call(collx::communicator<Transport>& comm, oracle::setting const& how,
          oracle::participant<Contract, Op> const& with, Op const& op) {
  namespace contract = collx::contract;
  auto const in = with.in();
  auto const out = with.out();
  collx::rank_t const root = how.root;
  if constexpr (std::is_same_v<Contract, contract::all_reduce>) {
    if (how.in_place) return Form::all_reduce(comm, out, op);
    return Form::all_reduce(comm, in, out, op);
  } else if constexpr (std::is_same_v<Contract, contract::reduce_scatter>) {
    return Form::reduce_scatter(comm, in, out, op);
  } else if constexpr (std::is_same_v<Contract, contract::all_gather>) {
    return Form::all_gather(comm, in, out);
  } else if constexpr (std::is_same_v<Contract, contract::broadcast>) {
    if (how.in_place) return Form::broadcast(comm, out, root);
    return Form::broadcast(comm, in, out, root);
  } else {
    static_assert(std::is_same_v<Contract, contract::reduce>);
    if (how.in_place) return Form::reduce(comm, out, op, root);
    return Form::reduce(comm, in, out, op, root);
  }
}

}  // namespace forms
