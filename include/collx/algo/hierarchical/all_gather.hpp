// SPDX-License-Identifier: Apache-2.0
// all_gather on two levels: a part of algo/hierarchical.hpp, which explains it.
#pragma once

#include "collx/algo/hierarchical/levels.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// Block h * L + l is rank l's of host h. First lane l gathers those of its ranks, which lie L apart; then
// every host gathers the lanes: one chunk of the near schedule is all blocks of a lane.
template <class Intra, class Inter>
struct hierarchical_all_gather : same_on_both_levels<collx::contract::all_gather, Intra, Inter> {
  using base = same_on_both_levels<collx::contract::all_gather, Intra, Inter>;
  using near = typename base::near;
  using far = typename base::far;

  static constexpr COLLX_HD std::int32_t scratch_chunks(shape n) {
    return base::scratch_of_parts(n, 1);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t index) {
    two_levels const at(p);
    std::int32_t const far_steps = far::step_count(at.inter());
    if (index < far_steps) {
      placement const blocks{.chunks = at.hosts, .spacing = at.ranks, .base = at.local};
      return embed(far::step(at.inter(), index), everywhere(at.lane(), blocks, place::input));
    }
    placement const lanes{.chunks = at.ranks, .repeat = at.hosts, .pitch = at.ranks};
    return embed(near::step(at.intra(), index - far_steps), everywhere(at.own_host(), lanes, place::output));
  }

  static constexpr COLLX_HD cost documented_cost(shape n) { return base::cost_of_parts(n, 1); }
};

}  // namespace detail
}  // namespace collx::inline abi_1::algo
