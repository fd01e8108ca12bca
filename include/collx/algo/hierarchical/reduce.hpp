// SPDX-License-Identifier: Apache-2.0
// reduce on two levels: a part of algo/hierarchical.hpp, which explains it.
#pragma once

#include "collx/algo/hierarchical/levels.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// In every host the rank with the root's place reduces, and on its lane these reduce to the root. Only the
// root has an output: the others keep their host's result in scratch, between the scratch of both parts.
template <class Intra, class Inter>
struct hierarchical_reduce : two_parts_with_root<collx::contract::reduce, Intra, Inter> {
  using parts = two_parts_with_root<collx::contract::reduce, Intra, Inter>;
  using typename parts::far;
  using typename parts::near;

  static constexpr reproducibility reproduces = lower_level<near, far>();
  static constexpr bool keeps_rank_order = collx::keeps_rank_order<near>() && collx::keeps_rank_order<far>();

  // Parts keep a chunk in the slot of its number, so that scratch of one vector each is enough.
  static constexpr COLLX_HD bool supports(shape n) {
    return parts::parts_support(n) &&
           collx::scratch_chunks<near>(n.inner) <= collx::chunk_count<near>(n.inner) &&
           collx::scratch_chunks<far>(n.size / n.inner) <= collx::chunk_count<far>(n.size / n.inner);
  }
  static constexpr COLLX_HD std::int32_t chunk_count(shape n) {
    return collx::detail::common_multiple(collx::chunk_count<near>(n.inner),
                                          collx::chunk_count<far>(n.size / n.inner));
  }
  static constexpr COLLX_HD std::int32_t scratch_chunks(shape n) {
    return n.size == 1 ? 0 : 3 * chunk_count(n);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t index) {
    two_levels const at(p);
    std::int32_t const chunks = chunk_count(p.shape()), first = parts::near_steps(at);
    place const kept = p.rank == p.root ? place::output : place::scratch;
    std::int32_t const kept_at = p.rank == p.root ? 0 : chunks;
    if (index < first) {
      std::int32_t const own = collx::chunk_count<near>(at.ranks), unit = chunks / own;
      primitive step = near::step(at.intra(), index);
      step.complete = step.complete && at.hosts == 1;
      step.push = step.push && at.host == at.root_host;  // into outputs only
      return embed(step, {.along = at.own_host(),
                          .input = placed(place::input, own, unit),
                          .output = placed(kept, own, unit, kept_at),
                          .scratch = placed(place::scratch, own, unit),
                          .unstored = placed(place::output, own, unit)});
    }
    std::int32_t const own = collx::chunk_count<far>(at.hosts), unit = chunks / own;
    bool const reads_input = at.ranks == 1;
    return embed(far::step(at.inter(), index - first),
                 {.along = at.lane(),
                  .input = reads_input ? placed(place::input, own, unit) : placed(kept, own, unit, kept_at),
                  .output = placed(place::output, own, unit),
                  .scratch = placed(place::scratch, own, unit, 2 * chunks),
                  .unstored = placed(place::output, own, unit)});
  }

  static constexpr COLLX_HD cost documented_cost(shape n) {
    rank_t const hosts = n.size / n.inner;
    return sum(n, n.inner > 1 ? collx::documented_cost<near>(n.inner) : cost{},
               collx::documented_cost<far>(hosts));
  }
  static constexpr COLLX_HD cost documented_cost(shape n, rank_t root) {
    rank_t const hosts = n.size / n.inner;
    return sum(n, n.inner > 1 ? collx::documented_cost<near>(n.inner, root % n.inner) : cost{},
               collx::documented_cost<far>(hosts, root / n.inner));
  }

 private:
  static constexpr COLLX_HD cost sum(shape n, cost first, cost next) {
    std::int32_t const chunks = chunk_count(n);
    return first.cut_in(chunks / collx::chunk_count<near>(n.inner)) +
           next.cut_in(chunks / collx::chunk_count<far>(n.size / n.inner));
  }
};

}  // namespace detail
}  // namespace collx::inline abi_1::algo
