// SPDX-License-Identifier: Apache-2.0
// reduce_scatter on two levels: a part of algo/hierarchical.hpp, which explains it.
#pragma once

#include "collx/algo/hierarchical/levels.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// The mirror image of all_gather: every host reduces, for each of its ranks, the blocks of that rank's lane,
// which lie L apart; the sums go to scratch, and lane l reduces them between hosts.
template <class Intra, class Inter>
struct hierarchical_reduce_scatter {
  using contract = collx::contract::reduce_scatter;
  using near = schedule_for<contract, Intra>;
  using far = schedule_for<contract, Inter>;

  static constexpr bool cost_is_bound = true;
  static constexpr reproducibility reproduces = lower_level<near, far>();

  static constexpr COLLX_HD bool supports(shape n) {
    return divides(n) && collx::supports<near>(n.inner) && collx::supports<far>(n.size / n.inner) &&
           chunks_per_block<near>(n.inner) == 1 && chunks_per_block<far>(n.size / n.inner) == 1;
  }
  static constexpr COLLX_HD std::int32_t chunk_count(shape n) { return n.size; }
  // The sums of the lane's blocks, and behind them the scratch of whichever part runs.
  static constexpr COLLX_HD std::int32_t scratch_chunks(shape n) {
    rank_t const hosts = n.size / n.inner;
    return hosts + collx::detail::larger(collx::scratch_chunks<near>(n.inner) * hosts,
                                         collx::scratch_chunks<far>(hosts));
  }
  static constexpr COLLX_HD std::int32_t depth(shape n) {
    return collx::detail::larger(collx::depth<near>(n.inner), collx::depth<far>(n.size / n.inner));
  }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    two_levels const at(p);
    return near::step_count(at.intra()) + far::step_count(at.inter());
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

  static constexpr COLLX_HD cost documented_cost(shape n) {
    rank_t const hosts = n.size / n.inner;
    cost const inter = collx::documented_cost<far>(hosts), intra = collx::documented_cost<near>(n.inner);
    return {inter.rounds + intra.rounds, inter.messages + intra.messages,
            inter.chunks + intra.chunks * hosts};
  }
};

}  // namespace detail
}  // namespace collx::inline abi_1::algo
