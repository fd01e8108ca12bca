// SPDX-License-Identifier: Apache-2.0
// One schedule after the other: the second works on what the first has left in the output.
//
//   then<contract::broadcast, binomial_tree::scatter, ring::all_gather>     van de Geijn's broadcast
//   then<contract::all_reduce, ring::reduce_scatter, bruck<2>::all_gather>
//
// A combination is a schedule of its own: prove it. An all_reduce, say, cuts its vector in nearly equal
// blocks, where a part made for reduce_scatter may rely on equal ones.
//
// Costs add up: exactly, where the rank that sends most in one also does in the other; otherwise the sum
// is a bound, and that is what the proof checks.
#pragma once

#include "collx/schedule/embed.hpp"

namespace collx::inline abi_1 {

template <class Contract, schedule First, schedule Second>
struct then {
  using contract = Contract;
  static constexpr bool cost_is_bound = true;
  static constexpr reproducibility reproduces = lower_level<First, Second>();
  static constexpr bool keeps_rank_order = collx::keeps_rank_order<First>() || !Contract::from_all;

  static constexpr COLLX_HD bool supports(shape n) {
    return collx::supports<First>(n) && collx::supports<Second>(n);
  }
  static constexpr COLLX_HD std::int32_t chunk_count(shape n) {
    return detail::common_multiple(collx::chunk_count<First>(n), collx::chunk_count<Second>(n));
  }
  static constexpr COLLX_HD std::int32_t scratch_chunks(shape n) {
    std::int32_t const chunks = chunk_count(n);
    return detail::larger(collx::scratch_chunks<First>(n) * (chunks / collx::chunk_count<First>(n)),
                          collx::scratch_chunks<Second>(n) * (chunks / collx::chunk_count<Second>(n)));
  }
  static constexpr COLLX_HD std::int32_t depth(shape n) {
    return detail::larger(collx::depth<First>(n), collx::depth<Second>(n));
  }
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    return First::step_count(p) + Second::step_count(p);
  }

  static constexpr COLLX_HD primitive step(problem p, std::int32_t index) {
    std::int32_t const first_steps = First::step_count(p);
    if (index < first_steps) return embed(First::step(p, index), laid_out<First>(p.shape(), place::input));
    return embed(Second::step(p, index - first_steps), laid_out<Second>(p.shape(), place::output));
  }

  static constexpr COLLX_HD cost documented_cost(shape n) {
    return sum(n, collx::documented_cost<First>(n), collx::documented_cost<Second>(n));
  }
  static constexpr COLLX_HD cost documented_cost(shape n, rank_t root) {
    return sum(n, collx::documented_cost<First>(n, root), collx::documented_cost<Second>(n, root));
  }

 private:
  template <class Part>
  static constexpr COLLX_HD embedding laid_out(shape n, place input) {
    std::int32_t const chunks = collx::chunk_count<Part>(n), unit = chunk_count(n) / chunks;
    return {.input = placed(input, chunks, unit),
            .output = placed(place::output, chunks, unit),
            .scratch = placed(place::scratch, chunks, unit),
            .unstored = placed(place::output, chunks, unit)};
  }

  static constexpr COLLX_HD cost sum(shape n, cost first, cost second) {
    std::int32_t const chunks = chunk_count(n);
    return first.cut_in(chunks / collx::chunk_count<First>(n)) +
           second.cut_in(chunks / collx::chunk_count<Second>(n));
  }
};

}  // namespace collx::inline abi_1
