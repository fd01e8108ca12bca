// SPDX-License-Identifier: Apache-2.0
// What a collective must leave in a rank's output, element by element, computed from the contract
// and from what every rank put in. Knows no algorithm.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>

#include "collx/collective/contract.hpp"
#include "collx/op/reduction.hpp"
#include "method.h"

namespace perf {

// Products of 1 and 2 stay far from the end of every type.
template <class T, class Op>
[[nodiscard]] T element(int value) {
  if constexpr (std::is_same_v<Op, collx::prod_t>) return static_cast<T>(value == 1 ? 2 : 1);
  else return static_cast<T>(value);
}

// Element `index` of the vector that `rank` contributes.
template <class T, class Op>
[[nodiscard]] T contribution(std::int64_t index, collx::rank_t rank) {
  return element<T, Op>(method_value(index, rank));
}

// Each element of a fresh input that `rank` has written for the `write`th time.
template <class T, class Op>
[[nodiscard]] T written(std::int64_t write, collx::rank_t rank) {
  return element<T, Op>(method_written(write, rank));
}

// The vector consists of equal blocks (contract.hpp), of which a rank's buffers hold some.
template <class Contract, class Op, class T>
struct reference {
  collx::problem p;
  std::int64_t block_count;  // elements of one block
  std::int64_t write = 0;    // 0: inputs are contributions; else what everybody wrote then

  [[nodiscard]] std::int64_t input_count() const { return Contract::input(p).count * block_count; }
  [[nodiscard]] std::int64_t output_count() const { return Contract::output(p).count * block_count; }

  // Where element `at` of a buffer lies in the vector.
  [[nodiscard]] std::int64_t index_of(collx::block_window const& window, std::int64_t at) const {
    return (window.first + at / block_count * window.stride) * block_count + at % block_count;
  }

  [[nodiscard]] T expected(std::int64_t index) const {
    if constexpr (Contract::from_all) {
      Op const op{};
      T value = given(index, 0);
      for (collx::rank_t r = 1; r < Contract::contributors(p); ++r) value = op(value, given(index, r));
      if constexpr (requires { op.finish(value, p.size); }) value = op.finish(value, p.size);
      return value;
    } else {
      auto const block = static_cast<std::int32_t>(index / block_count);
      return given(index, Contract::owner(p, block));
    }
  }

  void fill(std::span<T> input) const {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(input.size()); ++i)
      input[static_cast<std::size_t>(i)] = contribution<T, Op>(index_of(Contract::input(p), i), p.rank);
  }

  [[nodiscard]] std::int64_t wrong(std::span<T const> output) const {
    std::int64_t wrong_count = 0;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(output.size()); ++i)
      wrong_count +=
          !agree(output[static_cast<std::size_t>(i)], expected(index_of(Contract::output(p), i)));
    return wrong_count;
  }

 private:
  [[nodiscard]] T given(std::int64_t index, collx::rank_t rank) const {
    return write > 0 ? written<T, Op>(write, rank) : contribution<T, Op>(index, rank);
  }

  // Algorithms differ in the order in which they combine; for floating point that shows in the
  // last digits.
  static bool agree(T result, T wanted) {
    if constexpr (std::is_floating_point_v<T>)
      return std::abs(result - wanted) <= static_cast<T>(1e-5) * std::abs(wanted);
    else return result == wanted;
  }
};

}  // namespace perf
