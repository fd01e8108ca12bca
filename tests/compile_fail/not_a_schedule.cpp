// SPDX-License-Identifier: Apache-2.0
// first error: not a schedule: it has no static primitive step(problem, int32_t index)
#include "collx/collective/contract.hpp"
#include "collx/schedule/proves.hpp"

struct unfinished {
  using contract = collx::contract::broadcast;
  static constexpr bool supports(collx::rank_t n) { return n == 1; }
  static constexpr std::int32_t chunk_count(collx::rank_t) { return 1; }
  static constexpr std::int32_t step_count(collx::problem) { return 1; }
  static constexpr collx::cost documented_cost(collx::rank_t) { return {}; }
#ifdef FIXED
  static constexpr collx::primitive step(collx::problem, std::int32_t) {
    return {.operand = {collx::place::input, 0, 1}, .target = {collx::place::output, 0, 1}, .store = true};
  }
#endif
};

static_assert(collx::proves<unfinished, 1, 8>);
