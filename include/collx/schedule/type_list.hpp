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

namespace contract {
using all = type_list<all_reduce, reduce_scatter, all_gather, broadcast, reduce>;
}

// Calls f.template operator()<Algorithm, Contract, Schedule>() for every pair of an algorithm in
// `Algorithms` and a contract in `Contracts` for which the algorithm offers a schedule.
template <class Algorithms, class Contracts, class F>
constexpr void for_each_schedule(F&& f) {
  Algorithms::for_each([&]<class Algorithm>() {
    Contracts::for_each([&]<class Contract>() {
      if constexpr (algorithm_for<Algorithm, Contract>)
        f.template operator()<Algorithm, Contract, schedule_for<Contract, Algorithm>>();
    });
  });
}

}  // namespace collx::inline abi_1
