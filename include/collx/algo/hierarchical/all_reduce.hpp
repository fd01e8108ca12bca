// SPDX-License-Identifier: Apache-2.0
// all_reduce on two levels: a part of algo/hierarchical.hpp, which explains it.
#pragma once

#include "collx/algo/hierarchical/levels.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// The vector is cut in L blocks, one per lane, each in as many chunks as the parts need.
template <class Intra, class Inter>
struct hierarchical_all_reduce {
  using contract = collx::contract::all_reduce;
  using scatter = schedule_for<collx::contract::reduce_scatter, Intra>;
  using exchange = schedule_for<collx::contract::all_reduce, Inter>;
  using gather = schedule_for<collx::contract::all_gather, Intra>;

  static constexpr bool cost_is_bound = true;
  static constexpr reproducibility reproduces = lower_level<scatter, exchange>();
  static constexpr bool keeps_rank_order =
      collx::keeps_rank_order<scatter>() && collx::keeps_rank_order<exchange>();

  static constexpr COLLX_HD bool supports(shape n) {
    return detail::divides(n) && collx::supports<scatter>(n.inner) && collx::supports<gather>(n.inner) &&
           collx::supports<exchange>(n.size / n.inner);
  }
  static constexpr COLLX_HD std::int32_t chunk_count(shape n) { return n.inner * per_lane(n); }
  static constexpr COLLX_HD std::int32_t scratch_chunks(shape n) {
    std::int32_t const in_scatter = collx::scratch_chunks<scatter>(n.inner) * unit<scatter>(n);
    std::int32_t const in_gather = collx::scratch_chunks<gather>(n.inner) * unit<gather>(n);
    std::int32_t const in_exchange = collx::scratch_chunks<exchange>(n.size / n.inner) * exchange_unit(n);
    return collx::detail::larger(in_scatter, collx::detail::larger(in_exchange, in_gather));
  }
  static constexpr COLLX_HD std::int32_t depth(shape n) {
    return collx::detail::larger(
        collx::depth<scatter>(n.inner),
        collx::detail::larger(collx::depth<exchange>(n.size / n.inner), collx::depth<gather>(n.inner)));
  }

  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    detail::two_levels const at(p);
    std::int32_t const exchanges = at.hosts > 1 || at.ranks == 1 ? exchange::step_count(at.inter()) : 0;
    return at.ranks == 1 ? exchanges
                         : scatter::step_count(at.intra()) + exchanges + gather::step_count(at.intra());
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t index) {
    detail::two_levels const at(p);
    shape const n = p.shape();
    std::int32_t const scatters = at.ranks == 1 ? 0 : scatter::step_count(at.intra());
    if (index < scatters) {
      primitive step = scatter::step(at.intra(), index);
      step.complete = step.complete && at.hosts == 1;
      return embed(step, detail::everywhere(at.own_host(),
                                            placed(place::output, collx::chunk_count<scatter>(n.inner),
                                                   unit<scatter>(n)),
                                            place::input));
    }
    index -= scatters;
    std::int32_t const exchanges = at.hosts > 1 || at.ranks == 1 ? exchange::step_count(at.inter()) : 0;
    if (index < exchanges) {
      placement const block = placed(place::output, collx::chunk_count<exchange>(at.hosts), exchange_unit(n),
                                     at.local * per_lane(n));
      return embed(exchange::step(at.inter(), index),
                   detail::everywhere(at.lane(), block, at.ranks == 1 ? place::input : place::output));
    }
    placement const blocks =
        placed(place::output, collx::chunk_count<gather>(n.inner), unit<gather>(n));
    return embed(gather::step(at.intra(), index - exchanges),
                 detail::everywhere(at.own_host(), blocks, place::output));
  }

  static constexpr COLLX_HD cost documented_cost(shape n) {
    cost const between = collx::documented_cost<exchange>(n.size / n.inner).cut_in(exchange_unit(n));
    if (n.inner == 1) return between;
    return collx::documented_cost<scatter>(n.inner).cut_in(unit<scatter>(n)) + between +
           collx::documented_cost<gather>(n.inner).cut_in(unit<gather>(n));
  }

 private:
  // Chunks of one lane's block.
  static constexpr COLLX_HD std::int32_t per_lane(shape n) {
    using collx::detail::common_multiple;
    return common_multiple(collx::chunk_count<exchange>(n.size / n.inner),
                           common_multiple(detail::chunks_per_block<scatter>(n.inner),
                                           detail::chunks_per_block<gather>(n.inner)));
  }
  template <class Part>
  static constexpr COLLX_HD std::int32_t unit(shape n) {
    return per_lane(n) / detail::chunks_per_block<Part>(n.inner);
  }
  static constexpr COLLX_HD std::int32_t exchange_unit(shape n) {
    return per_lane(n) / collx::chunk_count<exchange>(n.size / n.inner);
  }
};

}  // namespace detail
}  // namespace collx::inline abi_1::algo
