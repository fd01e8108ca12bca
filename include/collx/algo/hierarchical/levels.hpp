// SPDX-License-Identifier: Apache-2.0
// What the schedules of hierarchical<Intra, Inter> share: where a rank stands in both levels, and how a
// part of theirs lies in the whole.
#pragma once

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
