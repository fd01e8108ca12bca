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
struct hierarchical_all_to_all {
  using contract = collx::contract::all_to_all;
  using near = schedule_for<contract, Intra>;
  using far = schedule_for<contract, Inter>;

  static constexpr bool cost_is_bound = true;

  static constexpr COLLX_HD bool supports(shape n) {
    return divides(n) && collx::supports<near>(n.inner) && collx::supports<far>(n.size / n.inner) &&
           chunks_per_block<near>(n.inner) == 1 && chunks_per_block<far>(n.size / n.inner) == 1;
  }
  static constexpr COLLX_HD std::int32_t chunk_count(shape n) { return n.size * n.size; }
  static constexpr COLLX_HD std::int32_t scratch_chunks(shape n) {
    rank_t const hosts = n.size / n.inner;
    return n.size + collx::detail::larger(collx::scratch_chunks<near>(n.inner) * hosts,
                                          collx::scratch_chunks<far>(hosts) * n.inner);
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

  static constexpr COLLX_HD cost documented_cost(shape n) {
    rank_t const hosts = n.size / n.inner;
    cost const inter = collx::documented_cost<far>(hosts), intra = collx::documented_cost<near>(n.inner);
    return {intra.rounds + inter.rounds, intra.messages + inter.messages,
            intra.chunks * hosts + inter.chunks * n.inner};
  }
};

}  // namespace detail
}  // namespace collx::inline abi_1::algo
