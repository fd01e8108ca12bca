// SPDX-License-Identifier: Apache-2.0
// Right schedules for two ranks, simple enough to be broken on purpose in one place.
#pragma once

#include "collx/collective/contract.hpp"
#include "collx/schedule/concept.hpp"

namespace wrong {

using namespace collx;

[[nodiscard]] constexpr rank_t other(problem p) { return 1 - p.rank; }

// Both send their vector (one chunk), both combine.
struct exchange {
  using contract = contract::all_reduce;
  static constexpr bool keeps_rank_order = true;
  static constexpr bool supports(rank_t n) { return n == 2; }
  static constexpr std::int32_t chunk_count(rank_t) { return 1; }
  static constexpr std::int32_t step_count(problem) { return 2; }
  static constexpr cost documented_cost(rank_t) { return {1, 1, 1}; }

  static constexpr primitive step(problem p, std::int32_t s) {
    if (s == 0) return {.to = only(other(p)), .operand = {place::input, 0, 1}, .copy = true};
    return {.from = {0, 1, 2},
            .operand = {place::input, 0, 1},
            .target = {place::output, 0, 1},
            .reduce = true,
            .store = true,
            .complete = true};
  }
};

// Both give the other its half and combine their own.
struct halve {
  using contract = contract::reduce_scatter;
  static constexpr bool keeps_rank_order = true;
  static constexpr bool supports(rank_t n) { return n == 2; }
  static constexpr std::int32_t chunk_count(rank_t) { return 2; }
  static constexpr std::int32_t step_count(problem) { return 2; }
  static constexpr cost documented_cost(rank_t) { return {1, 1, 1}; }

  static constexpr primitive step(problem p, std::int32_t s) {
    if (s == 0) return {.to = only(other(p)), .operand = {place::input, other(p), 1}};
    return {.from = {0, 1, 2},
            .operand = {place::input, p.rank, 1},
            .target = {place::output, p.rank, 1},
            .reduce = true,
            .store = true,
            .complete = true};
  }
};

// Both send their block, then store the other's block and a copy of their own.
struct swap {
  using contract = contract::all_gather;
  static constexpr bool supports(rank_t n) { return n == 2; }
  static constexpr std::int32_t chunk_count(rank_t) { return 2; }
  static constexpr std::int32_t step_count(problem) { return 2; }
  static constexpr cost documented_cost(rank_t) { return {1, 1, 1}; }

  static constexpr primitive step(problem p, std::int32_t s) {
    region const mine{place::input, p.rank, 1};
    if (s == 0) return {.to = only(other(p)), .operand = mine};
    return {.from = {0, 1, 2}, .operand = mine, .target = {place::output, 0, 1, 1}, .store = true};
  }
};

// The second half of halve, pushed: combine the own half, store it on both sides.
struct push_halves {
  using contract = contract::all_reduce;
  static constexpr bool keeps_rank_order = true;
  static constexpr bool supports(rank_t n) { return n == 2; }
  static constexpr std::int32_t chunk_count(rank_t) { return 2; }
  static constexpr std::int32_t step_count(problem) { return 3; }
  static constexpr cost documented_cost(rank_t) { return {2, 2, 2}; }

  static constexpr primitive step(problem p, std::int32_t s) {
    if (s == 2) return {.from = only(other(p)), .target = {place::output, other(p), 1}, .store = true};
    primitive step = halve::step(p, s);
    if (s == 1) {
      step.to = only(other(p));
      step.push = true;
    }
    return step;
  }
};

}  // namespace wrong
