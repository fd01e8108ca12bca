// SPDX-License-Identifier: Apache-2.0
// gather and scatter on two levels: parts of algo/hierarchical.hpp, which explains them.
#pragma once

#include "collx/algo/hierarchical/levels.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// What both share: in every host the rank with the root's place has the blocks of all its ranks for a while,
// in scratch between that of the near part and that of the far one. The root has them where its caller does.
template <class Contract, class Intra, class Inter>
struct through_leaders : two_parts_with_root<Contract, Intra, Inter> {
  using parts = two_parts_with_root<Contract, Intra, Inter>;
  using typename parts::far;
  using typename parts::near;

  static constexpr COLLX_HD bool supports(shape n) {
    return parts::parts_support(n) && parts::parts_cut_no_block(n);
  }
  static constexpr COLLX_HD std::int32_t chunk_count(shape n) { return n.size; }
  static constexpr COLLX_HD std::int32_t scratch_chunks(shape n) {
    return n.size == 1 ? 0 : far_scratch(n) + collx::scratch_chunks<far>(n.size / n.inner) * n.inner;
  }

  static constexpr COLLX_HD cost documented_cost(shape n) {
    return collx::documented_cost<near>(n.inner) +
           collx::documented_cost<far>(n.size / n.inner).cut_in(n.inner);
  }
  static constexpr COLLX_HD cost documented_cost(shape n, rank_t root) {
    return collx::documented_cost<near>(n.inner, root % n.inner) +
           collx::documented_cost<far>(n.size / n.inner, root / n.inner).cut_in(n.inner);
  }

 protected:
  // The host's blocks as the near part numbers them, and as one block of the far part. At the root they lie
  // in `whole`, a buffer of all blocks; elsewhere in scratch.
  static constexpr COLLX_HD placement in_host(problem p, two_levels const& at, place whole) {
    if (p.rank == p.root) return placed(whole, at.ranks, 1, at.host * at.ranks);
    return placed(place::scratch, at.ranks, 1, collx::scratch_chunks<near>(at.ranks));
  }
  static constexpr COLLX_HD placement of_host(problem p, two_levels const& at, place whole) {
    if (p.rank == p.root) return placed(whole, at.hosts, at.ranks);
    placement kept = placed(place::scratch, at.hosts, at.ranks, collx::scratch_chunks<near>(at.ranks));
    kept.shift = at.host;
    return kept;
  }
  // A rank's own block, in its input or output.
  static constexpr COLLX_HD placement own(two_levels const& at, place where) {
    return placed(where, at.ranks, 1, at.host * at.ranks);
  }
  static constexpr COLLX_HD placement near_scratch(two_levels const& at) {
    return placed(place::scratch, at.ranks, 1);
  }
  static constexpr COLLX_HD placement far_scratch_of(problem p, two_levels const& at) {
    return placed(place::scratch, at.hosts, at.ranks, far_scratch(p.shape()));
  }

 private:
  static constexpr COLLX_HD std::int32_t far_scratch(shape n) {
    return collx::scratch_chunks<near>(n.inner) + n.inner;
  }
};

template <class Intra, class Inter>
struct hierarchical_gather : through_leaders<collx::contract::gather, Intra, Inter> {
  using base = through_leaders<collx::contract::gather, Intra, Inter>;

  static constexpr COLLX_HD primitive step(problem p, std::int32_t index) {
    two_levels const at(p);
    std::int32_t const first = base::near_steps(at);
    if (index < first)
      return embed(base::near::step(at.intra(), index), {.along = at.own_host(),
                                                         .input = base::own(at, place::input),
                                                         .output = base::in_host(p, at, place::output),
                                                         .scratch = base::near_scratch(at),
                                                         .unstored = base::own(at, place::output)});
    placement const whole = placed(place::output, at.hosts, at.ranks);
    return embed(
        base::far::step(at.inter(), index - first),
        {.along = at.lane(),
         .input = at.ranks == 1 ? placed(place::input, at.hosts, 1) : base::of_host(p, at, place::output),
         .output = whole,
         .scratch = base::far_scratch_of(p, at),
         .unstored = whole});
  }
};

template <class Intra, class Inter>
struct hierarchical_scatter : through_leaders<collx::contract::scatter, Intra, Inter> {
  using base = through_leaders<collx::contract::scatter, Intra, Inter>;

  static constexpr COLLX_HD primitive step(problem p, std::int32_t index) {
    two_levels const at(p);
    std::int32_t const first = base::far_steps(at);
    if (index < first) {
      placement const whole = placed(place::input, at.hosts, at.ranks);
      primitive step = base::far::step(at.inter(), index);
      // The blocks of the root's own host stay where they are: the near part takes them from the input.
      if (p.rank == p.root && at.ranks > 1 && step.target.where == place::output) step.store = false;
      placement kept = base::of_host(p, at, place::output);
      if (at.ranks == 1) kept = placed(place::output, at.hosts, 1);
      return embed(step, {.along = at.lane(),
                          .input = whole,
                          .output = kept,
                          .scratch = base::far_scratch_of(p, at),
                          .unstored = placed(place::output, at.hosts, at.ranks)});
    }
    return embed(base::near::step(at.intra(), index - first), {.along = at.own_host(),
                                                               .input = base::in_host(p, at, place::input),
                                                               .output = base::own(at, place::output),
                                                               .scratch = base::near_scratch(at),
                                                               .unstored = base::own(at, place::output)});
  }
};

}  // namespace detail
}  // namespace collx::inline abi_1::algo
