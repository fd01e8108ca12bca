// SPDX-License-Identifier: Apache-2.0
// What the schedules of hierarchical<Intra, Inter> share: where a rank stands in both levels, and how a
// part of theirs lies in the whole.
#pragma once

#include <type_traits>

#include "collx/collective/contract.hpp"
#include "collx/schedule/embed.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// The place of a rank in both levels, and the axes on which they work.
struct two_levels {
  rank_t ranks, hosts;  // per host, and in all
  rank_t local, host;   // this rank's
  rank_t root_local, root_host;

  constexpr COLLX_HD explicit two_levels(problem const& p)
      : ranks(p.inner),
        hosts(p.size / p.inner),
        local(p.rank % p.inner),
        host(p.rank / p.inner),
        root_local(p.root % p.inner),
        root_host(p.root / p.inner) {}

  [[nodiscard]] constexpr COLLX_HD problem intra() const { return {local, ranks, root_local}; }
  [[nodiscard]] constexpr COLLX_HD problem inter() const { return {host, hosts, root_host}; }
  [[nodiscard]] constexpr COLLX_HD axis own_host() const { return {host * ranks, 1, ranks}; }
  [[nodiscard]] constexpr COLLX_HD axis lane() const { return {local, ranks, hosts}; }
};

[[nodiscard]] constexpr COLLX_HD bool divides(shape n) {
  return n.inner > 0 && n.inner <= n.size && n.size % n.inner == 0;
}

// Whether every step of a combination can be said in the language: what one part names by runs of several
// chunks apart cannot be cut again (embed() then gives a region that no buffer has). Shapes on which all
// such steps come up.
template <class Combined>
[[nodiscard]] consteval bool can_be_said() {
  constexpr shape shapes[] = {{8, 4}, {8, 2}, {10, 5}, {12, 3}};
  for (shape const n : shapes) {
    if (!Combined::supports(n)) continue;
    for (rank_t rank = 0; rank < n.size; rank += n.size - 1) {
      problem const p{rank, n.size, 0, n.inner};
      for (std::int32_t i = 0; i < Combined::step_count(p); ++i)
        if (primitive const step = Combined::step(p, i); step.operand.count < 0 || step.target.count < 0)
          return false;
    }
  }
  return true;
}

// One schedule of a hierarchical one: in how many chunks it cuts each of its blocks.
template <class Part>
[[nodiscard]] constexpr COLLX_HD std::int32_t chunks_per_block(rank_t size) {
  return chunk_count<Part>(size) / Part::contract::blocks(size);
}

// What schedules are that run one schedule of the same collective on each level.
template <class Contract, class Intra, class Inter>
struct two_parts {
  using contract = Contract;
  using near = schedule_for<Contract, Intra>;
  using far = schedule_for<Contract, Inter>;

  static constexpr bool cost_is_bound = true;

  static constexpr COLLX_HD std::int32_t depth(shape n) {
    return collx::detail::larger(collx::depth<near>(n.inner), collx::depth<far>(n.size / n.inner));
  }

 protected:
  static constexpr COLLX_HD bool parts_support(shape n) {
    return divides(n) && collx::supports<near>(n.inner) && collx::supports<far>(n.size / n.inner);
  }
  static constexpr COLLX_HD bool parts_cut_no_block(shape n) {
    return chunks_per_block<near>(n.inner) == 1 && chunks_per_block<far>(n.size / n.inner) == 1;
  }
};

// Those with a root: on the far level, the ranks with the root's place in their hosts take part.
template <class Contract, class Intra, class Inter>
struct two_parts_with_root : two_parts<Contract, Intra, Inter> {
  using typename two_parts<Contract, Intra, Inter>::near;
  using typename two_parts<Contract, Intra, Inter>::far;

  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    two_levels const at(p);
    return near_steps(at) + far_steps(at);
  }

 protected:
  static constexpr COLLX_HD std::int32_t near_steps(two_levels const& at) {
    return at.ranks > 1 ? near::step_count(at.intra()) : 0;
  }
  static constexpr COLLX_HD std::int32_t far_steps(two_levels const& at) {
    bool const takes_part = at.local == at.root_local && (at.hosts > 1 || at.ranks == 1);
    return takes_part ? far::step_count(at.inter()) : 0;
  }
};

// Those in which all ranks take part in both: all but the steps. To the near one a chunk is a block for each
// host; to the far one it is `far_unit` blocks.
template <class Contract, class Intra, class Inter>
struct same_on_both_levels : two_parts<Contract, Intra, Inter> {
  using parts = two_parts<Contract, Intra, Inter>;
  using typename parts::far;
  using typename parts::near;

  static constexpr COLLX_HD bool supports(shape n) {
    bool const is_of_pairs = std::is_same_v<Contract, contract::all_to_all>;
    return parts::parts_support(n) && parts::parts_cut_no_block(n) &&
           (!is_of_pairs || n.size <= paired_ranks_max);
  }
  static constexpr COLLX_HD std::int32_t chunk_count(shape n) { return Contract::blocks(n.size); }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    two_levels const at(p);
    return near::step_count(at.intra()) + far::step_count(at.inter());
  }

 protected:
  // Scratch of whichever part runs.
  static constexpr COLLX_HD std::int32_t scratch_of_parts(shape n, std::int32_t far_unit) {
    rank_t const hosts = n.size / n.inner;
    return collx::detail::larger(collx::scratch_chunks<near>(n.inner) * hosts,
                                 collx::scratch_chunks<far>(hosts) * far_unit);
  }
  static constexpr COLLX_HD cost cost_of_parts(shape n, std::int32_t far_unit) {
    rank_t const hosts = n.size / n.inner;
    return collx::documented_cost<far>(hosts).cut_in(far_unit) +
           collx::documented_cost<near>(n.inner).cut_in(hosts);
  }
};

// All of a part's places alike: what reads the input first is told so by `input`.
[[nodiscard]] constexpr COLLX_HD embedding everywhere(axis along, placement at, place input,
                                                      std::int32_t scratch_base = 0) {
  embedding in{along, at, at, at, at};
  in.input.where = input;
  in.output.where = in.unstored.where = place::output;
  in.scratch = placed(place::scratch, at.chunks, at.unit * at.repeat, scratch_base);
  return in;
}

}  // namespace detail

}  // namespace collx::inline abi_1::algo
