// SPDX-License-Identifier: Apache-2.0
// How many chunks of a schedule are on their way at a time, as executors count them that stage what they
// send.
#pragma once

#include <cstdint>

#include "collx/schedule/primitive.hpp"

namespace collx::inline abi_1 {

// Chunks that rank p stages at most during one fragment. A fan-out of one chunk counts once: all receivers
// read the same copy. `Steps`: a schedule as a value, of which step_count(p) and step(p, i) may be called.
template <class Steps>
[[nodiscard]] constexpr std::int64_t staged_chunks(Steps const& s, problem const& p) noexcept {
  std::int64_t total = 0;
  for (std::int32_t i = 0, n = s.step_count(p); i < n; ++i) {
    primitive const step = s.step(p, i);
    if (step.to.empty()) continue;
    bool const result = !step.from.empty();
    region const& sent = result && step.store ? step.target : step.operand;
    std::int32_t const others = step.to.count - (step.to.contains(p.rank, p.size) ? 1 : 0);
    std::int32_t const copies = !result && sent.per_peer != 0 ? others : others > 0;
    total += std::int64_t{copies} * (sent.count > 0 ? sent.count : step.target.count);
  }
  return total;
}

}  // namespace collx::inline abi_1
