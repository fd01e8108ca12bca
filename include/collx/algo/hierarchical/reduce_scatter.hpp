// SPDX-License-Identifier: Apache-2.0
// reduce_scatter on two levels: a part of algo/hierarchical.hpp, which explains it.
#pragma once

#include "collx/algo/hierarchical/levels.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// The mirror image of all_gather: every host reduces, for each of its ranks, the blocks of that rank's lane,
// which lie L apart; the sums go to scratch, and lane l reduces them between hosts.
template <class Intra, class Inter>
struct hierarchical_reduce_scatter : same_on_both_levels<collx::contract::reduce_scatter, Intra, Inter> {
  using base = same_on_both_levels<collx::contract::reduce_scatter, Intra, Inter>;
  using near = typename base::near;
  using far = typename base::far;

  static constexpr reproducibility reproduces = lower_level<near, far>();
  static constexpr bool keeps_rank_order = collx::keeps_rank_order<near>() && collx::keeps_rank_order<far>();

  // The sums of the lane's blocks come first.
  static constexpr COLLX_HD std::int32_t scratch_chunks(shape n) {
    return n.size / n.inner + base::scratch_of_parts(n, 1);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t index) {
    two_levels const at(p);
    std::int32_t const near_steps = near::step_count(at.intra());
    if (index < near_steps) {
      placement const lanes{.chunks = at.ranks, .repeat = at.hosts, .pitch = at.ranks};
      embedding in = everywhere(at.own_host(), lanes, place::input, at.hosts);
      // The own chunk, `local`, is that of all the sums.
      in.output = {.where = place::scratch, .chunks = 1, .unit = at.hosts, .shift = at.local};
      primitive step = near::step(at.intra(), index);
      step.complete = step.complete && at.hosts == 1;
      return embed(step, in);
    }
    placement const blocks{.chunks = at.hosts, .spacing = at.ranks, .base = at.local};
    embedding in = everywhere(at.lane(), blocks, place::input, at.hosts);
    in.input = placed(place::scratch, at.hosts, 1);
    return embed(far::step(at.inter(), index - near_steps), in);
  }

  static constexpr COLLX_HD cost documented_cost(shape n) { return base::cost_of_parts(n, 1); }
};

}  // namespace detail
}  // namespace collx::inline abi_1::algo
