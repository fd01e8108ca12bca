// SPDX-License-Identifier: Apache-2.0
// all_to_all on two levels: a part of algo/hierarchical.hpp, which explains it.
#pragma once

#include "collx/algo/hierarchical/levels.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// Block s * n + d goes from rank s to rank d. First rank l of a host gives rank k of it what it has for
// lane k: H blocks, which lie L apart; they go to scratch, sorted by receiving host: slot h * L + l. Then
// lane k gives host h the L blocks of the slots from h * L on, and they come to lie where they belong.
template <class Intra, class Inter>
struct hierarchical_all_to_all : same_on_both_levels<collx::contract::all_to_all, Intra, Inter> {
  using base = same_on_both_levels<collx::contract::all_to_all, Intra, Inter>;
  using near = typename base::near;
  using far = typename base::far;

  // What has been gathered comes first.
  static constexpr COLLX_HD std::int32_t scratch_chunks(shape n) {
    return n.size + base::scratch_of_parts(n, n.inner);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t index) {
    two_levels const at(p);
    rank_t const n = p.size;
    std::int32_t const near_steps = near::step_count(at.intra());
    if (index < near_steps) {
      rank_t const row = at.local * at.ranks;  // the part's own row of blocks
      placement const given{.chunks = at.ranks * at.ranks, .base = p.rank * n, .shift = row,
                            .repeat = at.hosts, .pitch = at.ranks};
      placement const taken{.where = place::scratch, .chunks = at.ranks * at.ranks, .shift = at.local,
                            .divisor = at.ranks, .repeat = at.hosts, .pitch = at.ranks};
      embedding in{at.own_host(), given, taken, {}, taken};
      in.scratch = placed(place::scratch, in.scratch.chunks, at.hosts, n);
      return embed(near::step(at.intra(), index), in);
    }
    placement const given{.where = place::scratch, .chunks = at.hosts * at.hosts, .unit = at.ranks,
                          .spacing = at.ranks, .shift = at.host * at.hosts};
    placement const taken{.where = place::output,
                          .chunks = at.hosts * at.hosts,
                          .spacing = at.ranks * n,
                          .base = p.rank,
                          .shift = at.host,
                          .divisor = at.hosts,
                          .repeat = at.ranks,
                          .pitch = n};
    embedding in{at.lane(), given, taken, {}, taken};
    in.scratch = placed(place::scratch, in.scratch.chunks, at.ranks, n);
    return embed(far::step(at.inter(), index - near_steps), in);
  }

  static constexpr COLLX_HD cost documented_cost(shape n) { return base::cost_of_parts(n, n.inner); }
};

}  // namespace detail
}  // namespace collx::inline abi_1::algo
