// SPDX-License-Identifier: Apache-2.0
// A list of types that can be walked: how the matrix of tests, benches and docs is written once.
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace collx::inline abi_1 {

template <class... Ts>
struct type_list {
  static constexpr int size = sizeof...(Ts);

  // Calls f.template operator()<T>() for every T in order.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f.template operator()<Ts>(), ...);
  }
};

namespace detail {
template <class, class>
struct join;
template <class... As, class... Bs>
struct join<type_list<As...>, type_list<Bs...>> {
  using type = type_list<As..., Bs...>;
};
}  // namespace detail

// The types of two lists.
template <class A, class B>
using joined = typename detail::join<A, B>::type;

namespace contract {
using all = type_list<all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce, gather, scatter,
                      scan, exclusive_scan, barrier>;
}

namespace detail {

// The loops below as types: nvcc 13 crashes on some nested generic lambdas.
template <class Contract, class F>
struct visit_serving {
  F& f;

  template <class Algorithm>
  constexpr void operator()() const {
    if constexpr (algorithm_for<Algorithm, Contract>)
      f.template operator()<Algorithm, Contract, schedule_for<Contract, Algorithm>>();
  }
};

template <class Algorithm, class F>
struct visit_contract {
  F& f;

  template <class Contract>
  constexpr void operator()() const {
    if constexpr (algorithm_for<Algorithm, Contract>)
      if constexpr (std::same_as<typename schedule_for<Contract, Algorithm>::contract, Contract>)
        f.template operator()<Algorithm, Contract, schedule_for<Contract, Algorithm>>();
  }
};

template <class Contracts, class F>
struct visit_algorithm {
  F& f;

  template <class Algorithm>
  constexpr void operator()() const {
    Contracts::for_each(visit_contract<Algorithm, F>{f});
  }
};

}  // namespace detail

// Calls f.template operator()<Algorithm, Contract, Schedule>() for every pair of an algorithm in
// `Algorithms` and a contract in `Contracts` for which the algorithm has a schedule. A schedule that
// serves under another contract too (an all_reduce as a barrier) comes once, under its own.
template <class Algorithms, class Contracts, class F>
constexpr void for_each_schedule(F&& f) {
  Algorithms::for_each(detail::visit_algorithm<Contracts, std::remove_reference_t<F>>{f});
}

// The same for every algorithm that serves one contract, with a schedule of its own or another's.
template <class Algorithms, class Contract, class F>
constexpr void for_each_serving(F&& f) {
  Algorithms::for_each(detail::visit_serving<Contract, std::remove_reference_t<F>>{f});
}

}  // namespace collx::inline abi_1
