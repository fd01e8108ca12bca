// SPDX-License-Identifier: Apache-2.0
// all_gather on two levels: a part of algo/hierarchical.hpp, which explains it.
#pragma once

#include "collx/algo/hierarchical/levels.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// Block h * L + l is rank l's of host h. First lane l gathers those of its ranks, which lie L apart; then
// every host gathers the lanes: one chunk of the near schedule is all blocks of a lane.
template <class Intra, class Inter>
struct hierarchical_all_gather {
  using contract = collx::contract::all_gather;
  using near = schedule_for<contract, Intra>;
  using far = schedule_for<contract, Inter>;

  static constexpr bool cost_is_bound = true;

  static constexpr COLLX_HD bool supports(shape n) {
    return divides(n) && collx::supports<near>(n.inner) && collx::supports<far>(n.size / n.inner) &&
           chunks_per_block<near>(n.inner) == 1 && chunks_per_block<far>(n.size / n.inner) == 1;
  }
  static constexpr COLLX_HD std::int32_t chunk_count(shape n) { return n.size; }
  // Scratch holds the blocks of whichever part runs.
  static constexpr COLLX_HD std::int32_t scratch_chunks(shape n) {
    rank_t const hosts = n.size / n.inner;
    return collx::detail::larger(collx::scratch_chunks<near>(n.inner) * hosts,
                                 collx::scratch_chunks<far>(hosts));
  }
  static constexpr COLLX_HD std::int32_t depth(shape n) {
    return collx::detail::larger(collx::depth<near>(n.inner), collx::depth<far>(n.size / n.inner));
  }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    two_levels const at(p);
    return far::step_count(at.inter()) + near::step_count(at.intra());
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

  static constexpr COLLX_HD cost documented_cost(shape n) {
    rank_t const hosts = n.size / n.inner;
    cost const inter = collx::documented_cost<far>(hosts), intra = collx::documented_cost<near>(n.inner);
    return {inter.rounds + intra.rounds, inter.messages + intra.messages,
            inter.chunks + intra.chunks * hosts};
  }
};

}  // namespace detail
}  // namespace collx::inline abi_1::algo
