// SPDX-License-Identifier: Apache-2.0
// broadcast on two levels: a part of algo/hierarchical.hpp, which explains it.
#pragma once

#include "collx/algo/hierarchical/levels.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// Only the root's host scatters; every lane broadcasts its block from there; every host gathers.
template <class Intra, class Inter>
struct hierarchical_broadcast {
  using contract = collx::contract::broadcast;
  using scatter = schedule_for<collx::contract::scatter, Intra>;
  using far = schedule_for<contract, Inter>;
  using gather = schedule_for<collx::contract::all_gather, Intra>;

  static constexpr bool cost_is_bound = true;

  static constexpr COLLX_HD bool supports(shape n) {
    return divides(n) && collx::supports<scatter>(n.inner) && collx::supports<gather>(n.inner) &&
           collx::supports<far>(n.size / n.inner);
  }
  static constexpr COLLX_HD std::int32_t chunk_count(shape n) { return n.inner * per_lane(n); }
  static constexpr COLLX_HD std::int32_t scratch_chunks(shape n) {
    using collx::detail::larger;
    return larger(collx::scratch_chunks<scatter>(n.inner) * unit<scatter>(n),
                  larger(collx::scratch_chunks<far>(n.size / n.inner) * far_unit(n),
                         collx::scratch_chunks<gather>(n.inner) * unit<gather>(n)));
  }
  static constexpr COLLX_HD std::int32_t depth(shape n) {
    using collx::detail::larger;
    return larger(collx::depth<scatter>(n.inner),
                  larger(collx::depth<far>(n.size / n.inner), collx::depth<gather>(n.inner)));
  }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    two_levels const at(p);
    return scatters(at) + far::step_count(at.inter()) + gather::step_count(at.intra());
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t index) {
    two_levels const at(p);
    shape const n = p.shape();
    std::int32_t const scatter_steps = scatters(at), far_steps = far::step_count(at.inter());
    if (index < scatter_steps)
      return embed(scatter::step(at.intra(), index),
                   everywhere(at.own_host(),
                              placed(place::output, collx::chunk_count<scatter>(n.inner), unit<scatter>(n)),
                              place::input));
    index -= scatter_steps;
    if (index < far_steps) {
      placement const block = placed(place::output, collx::chunk_count<far>(at.hosts), far_unit(n),
                                     at.local * per_lane(n));
      return embed(far::step(at.inter(), index), everywhere(at.lane(), block, place::output));
    }
    placement const blocks = placed(place::output, collx::chunk_count<gather>(n.inner), unit<gather>(n));
    return embed(gather::step(at.intra(), index - far_steps),
                 everywhere(at.own_host(), blocks, place::output));
  }

  static constexpr COLLX_HD cost documented_cost(shape n) {
    return cost_of_parts(n, collx::documented_cost<scatter>(n.inner),
                         collx::documented_cost<far>(n.size / n.inner));
  }
  static constexpr COLLX_HD cost documented_cost(shape n, rank_t root) {
    return cost_of_parts(n, collx::documented_cost<scatter>(n.inner, root % n.inner),
                         collx::documented_cost<far>(n.size / n.inner, root / n.inner));
  }

 private:
  static constexpr COLLX_HD cost cost_of_parts(shape n, cost of_scatter, cost of_far) {
    return of_scatter.cut_in(unit<scatter>(n)) + of_far.cut_in(far_unit(n)) +
           collx::documented_cost<gather>(n.inner).cut_in(unit<gather>(n));
  }
  static constexpr COLLX_HD std::int32_t scatters(two_levels const& at) {
    return at.host == at.root_host ? scatter::step_count(at.intra()) : 0;
  }
  static constexpr COLLX_HD std::int32_t per_lane(shape n) {
    using collx::detail::common_multiple;
    return common_multiple(
        collx::chunk_count<far>(n.size / n.inner),
        common_multiple(chunks_per_block<scatter>(n.inner), chunks_per_block<gather>(n.inner)));
  }
  template <class Part>
  static constexpr COLLX_HD std::int32_t unit(shape n) {
    return per_lane(n) / chunks_per_block<Part>(n.inner);
  }
  static constexpr COLLX_HD std::int32_t far_unit(shape n) {
    return per_lane(n) / collx::chunk_count<far>(n.size / n.inner);
  }
};

}  // namespace detail
}  // namespace collx::inline abi_1::algo
