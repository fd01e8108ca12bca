// SPDX-License-Identifier: Apache-2.0
// The sending half of spreading messages over several flows: each slice goes to the flow with the least under
// way, and none to a flow that has its share. A slow flow so gets less, without anybody measuring it. The
// mechanism is that of NCCLX's dynamic queue-pair load balancing (arXiv:2510.20171).
#pragma once

#include <cstdint>

#include "collx/core/config.hpp"

namespace collx::inline abi_1::transport::flows {

inline constexpr int flows_max = 16;

// What a link between two ranks is used with; the same for all links of a rank.
struct flow_limits {
  int flows = 1;
  std::uint32_t slice_bytes = 1 << 20;  // a message is cut into slices of so many bytes
  std::uint32_t slices_per_flow = 2;    // under way at most, where no rule says otherwise

  // Those for data, and one for control.
  [[nodiscard]] constexpr int connections() const noexcept { return 1 + flows; }
};

class flow_choice {
 public:
  explicit flow_choice(flow_limits const& limits) noexcept : limits_(limits) {}

  [[nodiscard]] flow_limits const& limits() const noexcept { return limits_; }

  // The flow that takes the next slice; -1: each has its share under way. `slices_per_flow`: of this slice's
  // kind.
  [[nodiscard]] int pick() const noexcept { return pick(limits_.slices_per_flow); }
  [[nodiscard]] int pick(std::uint32_t slices_per_flow) const noexcept {
    int best = -1;
    for (int f = 0; f < limits_.flows; ++f)
      if (slices_[f] < slices_per_flow && (best < 0 || bytes_[f] < bytes_[best])) best = f;
    return best;
  }

  void given(int flow, std::uint32_t bytes) noexcept {
    ++slices_[flow];
    bytes_[flow] += bytes;
  }
  // It is no longer under way.
  void returned(int flow, std::uint32_t bytes) noexcept {
    --slices_[flow];
    bytes_[flow] -= bytes;
  }

  [[nodiscard]] std::uint32_t slices_under_way(int flow) const noexcept { return slices_[flow]; }
  [[nodiscard]] std::uint64_t bytes_under_way(int flow) const noexcept { return bytes_[flow]; }

 private:
  flow_limits limits_;
  std::uint32_t slices_[flows_max] = {};
  std::uint64_t bytes_[flows_max] = {};
};

}  // namespace collx::inline abi_1::transport::flows
