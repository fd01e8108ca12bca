// SPDX-License-Identifier: Apache-2.0
// The sum in which every rank's contribution is first multiplied by a factor of that rank's own (NCCL's
// PreMulSum): out[i] = factor_0 * in_0[i] + factor_1 * in_1[i] + ...
#pragma once

#include "collx/op/reduction.hpp"

namespace collx::inline abi_1 {

// The product is converted to the element type before it is added. The input is not changed, unless the
// call is in place.
template <class Factor>
struct premultiplied_sum_t : library_operator {
  static constexpr char const* name = "premultiplied_sum";
  Factor factor;

  template <class T>
    requires requires(T const& own, Factor f) { static_cast<T>(own * f); }
  COLLX_HD constexpr T prepare(T const& own) const {
    if constexpr (std::is_integral_v<T> && std::is_integral_v<Factor>) {
      using both = std::common_type_t<T, Factor>;
      return static_cast<T>(detail::multiplied(static_cast<both>(own), static_cast<both>(factor)));
    } else {
      return static_cast<T>(own * factor);
    }
  }
  // Asks for the product too: without it this would be the plain sum, which nobody asked for.
  template <class T>
    requires requires(T const& a, T const& b, Factor f) { static_cast<T>(a + b), static_cast<T>(a * f); }
  COLLX_HD constexpr T operator()(T const& a, T const& b) const {
    return detail::added(a, b);
  }
};

template <class Factor>
[[nodiscard]] constexpr premultiplied_sum_t<Factor> premultiplied_sum(Factor factor) {
  return {{}, factor};
}

}  // namespace collx::inline abi_1
