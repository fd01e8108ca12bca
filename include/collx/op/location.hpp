// SPDX-License-Identifier: Apache-2.0
// The smallest or largest value and where it is (MPI_MINLOC, MPI_MAXLOC): elements are pairs of a value
// and an index that the caller gives a meaning, such as its rank or a place in the global vector.
#pragma once

#include <concepts>

#include "collx/core/types.hpp"

namespace collx::inline abi_1 {

template <class T, class Index = std::int64_t>
struct value_index {
  T value;
  Index index;

  friend constexpr bool operator==(value_index const&, value_index const&) = default;
};

// Of equal values the lower index wins, so that the result is the same in any order. A NaN is neither
// less nor equal: it loses to what stands before it and keeps its place before what follows, as in min.
struct min_location_t {
  static constexpr char const* name = "min_location";
  template <class Pair> static constexpr bool is_exact = std::integral<decltype(Pair::value)>;
  template <class T, class Index>
    requires requires(T const& a, T const& b) { static_cast<bool>(b < a), static_cast<bool>(a == b); }
  COLLX_HD constexpr value_index<T, Index> operator()(value_index<T, Index> const& a,
                                                      value_index<T, Index> const& b) const {
    bool const second = b.value < a.value || (b.value == a.value && b.index < a.index);
    return second ? b : a;
  }
};

struct max_location_t {
  static constexpr char const* name = "max_location";
  template <class Pair> static constexpr bool is_exact = std::integral<decltype(Pair::value)>;
  template <class T, class Index>
    requires requires(T const& a, T const& b) { static_cast<bool>(a < b), static_cast<bool>(a == b); }
  COLLX_HD constexpr value_index<T, Index> operator()(value_index<T, Index> const& a,
                                                      value_index<T, Index> const& b) const {
    bool const second = a.value < b.value || (b.value == a.value && b.index < a.index);
    return second ? b : a;
  }
};

inline constexpr min_location_t min_location{};
inline constexpr max_location_t max_location{};

}  // namespace collx::inline abi_1
