// SPDX-License-Identifier: Apache-2.0
// The same trials for every element type and operator.
#pragma once

#include <doctest/doctest.h>

#include "device/combine_trial.hpp"
#include "device/operators.hpp"

namespace device_test {

// Values with which every operator stays in range and no result depends on how products are rounded.
template <class T>
T value_of(collx::replayable_random& random) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(random.below(5));
  else if constexpr (requires { typename T::value_type; })
    return T(static_cast<float>(random.below(5)), static_cast<float>(random.below(3)));
  else if constexpr (requires { T::value; })
    return T{static_cast<decltype(T::value)>(random.below(4)),
             static_cast<decltype(T::index)>(random.next())};
  else return T(static_cast<float>(random.below(17)) * 0.375f - 3);
}

// The same outlines for all: both ways through a batch and their ends, twice the vectors of a team and more.
inline std::vector<outline> const& outlines() {
  static std::vector<outline> const all = [] {
    std::vector<outline> made;
    for (int const sources : {1, 2, 3, 6})
      for (bool const finish : {false, true}) {
        made.push_back({301, sources, 2, 0, 0, -1, finish});
        made.push_back({37, sources, 1, 16, 16, sources - 1, finish});
      }
    return made;
  }();
  return all;
}

template <class T, class Op>
void check(Op const& op) {
  auto const fill = [](collx::replayable_random& random) { return value_of<T>(random); };
  CHECK(wrong_trials(2, outlines(), subject_of<T>(op, fill)) == 0);
}

// With every operator.
template <class... Ts>
void check_all() {
  auto const with_all = []<class T>(T const*) {
    for_each_operator<T>([](auto const& op) { check<T>(op); });
  };
  (with_all(static_cast<Ts const*>(nullptr)), ...);
}

}  // namespace device_test
