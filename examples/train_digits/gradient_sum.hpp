// SPDX-License-Identifier: Apache-2.0
// The all_reduce of this program, composed here from parts that do not know each other: a schedule
// made of two of the library's, an element type, and the operator that adds two of them. Two ways
// of adding are offered; they differ in what they promise and in the bytes that travel.
#pragma once

#include <cstdint>
#include <span>

#include <collx/algo/direct.hpp>
#include <collx/algo/ring.hpp>
#include <collx/collective/all_reduce.hpp>
#include <collx/schedule/proves.hpp>
#include <collx/schedule/then.hpp>

namespace train_digits {

// An all_reduce is a reduce_scatter followed by an all_gather: any of the one with any of the other, which
// then<> puts together (docs/combining.md). Here one pass over memory adds up a chunk from everybody, in rank
// order; then the sums go round the ring.
struct composed : collx::then<collx::contract::all_reduce, collx::algo::direct_one_shot::reduce_scatter,
                              collx::algo::ring::all_gather> {
  static constexpr char const* name = "composed";
  // Everybody sends as much as everybody else in both halves, so that costs add up exactly.
  static constexpr bool cost_is_bound = false;
};

// A wrong composition does not compile.
static_assert(collx::proves<composed, 2, 8>);

// Sums of floats. What a sum rounds to depends on its order, hence on the number of ranks.
struct float_sum {
  using element = float;
  static constexpr char const* name = "float";
  static constexpr char const* promise = "same bits on every rank and from run to run";
  static constexpr bool same_for_any_rank_count = false;
  static constexpr auto combine = collx::sum;

  static void add(element& sum, float value) { sum += value; }
  static float value(element sum) { return sum; }
};

// A real number in steps of 2^-36. A type of its own, so that it cannot be mistaken for an integer.
struct fixed_point {
  std::int64_t steps = 0;
};

// Sums of integers. Each image's gradient is rounded once, by itself; from there on addition is
// exact, so neither the order, the algorithm nor the number of ranks can change a bit.
struct fixed_point_sum {
  using element = fixed_point;
  static constexpr char const* name = "fixed point";
  static constexpr char const* promise =
      "same bits whatever the number of ranks, the algorithm and the transport";
  static constexpr bool same_for_any_rank_count = true;

  // 2^-36 is well below what a float resolves of a gradient; 2^16 is well above any gradient of a
  // network that still learns; 2^(36+16) leaves room in 63 bits for 2^11 images.
  static constexpr float steps_per_unit = 0x1p36f;
  static constexpr float value_max = 0x1p16f;

  static constexpr struct plus {
    static constexpr char const* name = "fixed-point sum";
    constexpr fixed_point operator()(fixed_point a, fixed_point b) const { return {a.steps + b.steps}; }
  } combine{};

  // A value beyond the range, or not a number, counts as the end of the range: one image's gradient
  // is clipped in the same way whichever rank computes it.
  static void add(element& sum, float value) {
    float const above = value > -value_max ? value : -value_max;
    float const clipped = above < value_max ? above : value_max;
    sum.steps += static_cast<std::int64_t>(clipped * steps_per_unit);
  }
  static float value(element sum) {
    return static_cast<float>(static_cast<double>(sum.steps) / steps_per_unit);
  }
};

}  // namespace train_digits
