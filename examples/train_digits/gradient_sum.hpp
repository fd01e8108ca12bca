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

namespace train_digits {

// An all_reduce is a reduce_scatter followed by an all_gather: any of the one with any of the other,
// as long as both cut the vector in the same chunks. A schedule is a pure function, so composing two
// is arithmetic on the step's index.
template <collx::schedule ReduceScatter, collx::schedule AllGather>
struct scatter_then_gather {
  using contract = collx::contract::all_reduce;

  static constexpr COLLX_HD bool supports(collx::rank_t n) {
    return ReduceScatter::supports(n) && AllGather::supports(n) &&
           ReduceScatter::chunk_count(n) == AllGather::chunk_count(n);
  }
  static constexpr COLLX_HD std::int32_t chunk_count(collx::rank_t n) {
    return ReduceScatter::chunk_count(n);
  }
  static constexpr COLLX_HD std::int32_t step_count(collx::problem p) {
    return ReduceScatter::step_count(p) + AllGather::step_count(p);
  }
  static constexpr COLLX_HD collx::primitive step(collx::problem p, std::int32_t s) {
    std::int32_t const gather = s - ReduceScatter::step_count(p);
    if (gather < 0) return ReduceScatter::step(p, s);
    collx::primitive step = AllGather::step(p, gather);
    // What the second half takes as its input is what the first half left in the output.
    if (step.operand.where == collx::place::input) step.operand.where = collx::place::output;
    return step;
  }
  static constexpr COLLX_HD collx::cost documented_cost(collx::rank_t n) {
    collx::cost const a = ReduceScatter::documented_cost(n);
    collx::cost const b = AllGather::documented_cost(n);
    return {a.rounds + b.rounds, a.messages + b.messages, a.chunks + b.chunks};
  }
};

// One pass over memory adds up a chunk from everybody, in rank order; then the sums go round the ring.
struct composed
    : scatter_then_gather<collx::algo::direct_one_shot::reduce_scatter, collx::algo::ring::all_gather> {
  static constexpr char const* name = "composed";
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
