// SPDX-License-Identifier: Apache-2.0
// The library's operators that have a meaning for a type of numbers.
#pragma once

#include <type_traits>

#include "collx/op/reduction.hpp"

namespace device_test {

// `with`: called with each.
template <class T, class With>
void for_each_operator(With const& with) {
  with(collx::sum);
  with(collx::prod);
  with(collx::min);
  with(collx::max);
  with(collx::avg);
  with(collx::logical_and);
  with(collx::logical_or);
  if constexpr (std::is_integral_v<T>) {
    with(collx::bit_and);
    with(collx::bit_or);
    with(collx::bit_xor);
  }
}

}  // namespace device_test
