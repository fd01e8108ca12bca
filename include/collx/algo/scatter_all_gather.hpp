// SPDX-License-Identifier: Apache-2.0
// Scatter, then all-gather: the root gives every rank a part of the vector along a binomial tree, and
// all ranks exchange their parts. Twice the bytes of a chain and a fraction of its rounds: the choice
// for broadcast of large vectors to many ranks.
//
//   Barnett, Gupta, Payne, Shuler, van de Geijn, Watts: Interprocessor collective communication library
//   (InterCom) (1994).
//
// Cost for n ranks and M bytes, sent by the busiest rank, with the ring as AllGather:
//   broadcast  log2 n + n-1 rounds (floor(log2 n) or ceil, by the root), 2(n-1)/n M bytes
// With another one: what it costs, and for the scatter log2 n rounds and (n-1)/n M.
#pragma once

#include "collx/algo/composed_name.hpp"
#include "collx/algo/knomial_tree.hpp"
#include "collx/algo/ring.hpp"
#include "collx/schedule/then.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// The scatter of a broadcast, where every output holds everything: the leader of a block keeps it
// there, every chunk in its place. (Scratch would have to be as large, since chunks may differ in size.)
struct scatter_into_outputs {
  using contract = contract::broadcast;
  using scatter = knomial_tree<2>::scatter;

  static constexpr COLLX_HD bool supports(rank_t) { return true; }
  static constexpr COLLX_HD std::int32_t chunk_count(rank_t n) { return n; }
  // A leader ends with a copy of its own chunk from scratch to output, and here it is there already.
  static constexpr COLLX_HD std::int32_t step_count(problem p) {
    std::int32_t const steps = scatter::step_count(p);
    return p.rank != p.root && steps > 1 ? steps - 1 : steps;
  }
  static constexpr COLLX_HD primitive step(problem p, std::int32_t s) {
    primitive step = scatter::step(p, s);
    keep_in_output(step.operand, p.rank);
    keep_in_output(step.target, p.rank);
    return step;
  }
  static constexpr COLLX_HD cost documented_cost(rank_t n) { return scatter::documented_cost(n); }
  static constexpr COLLX_HD cost documented_cost(rank_t n, rank_t root) {
    return scatter::documented_cost(n, root);
  }

 private:
  static constexpr COLLX_HD void keep_in_output(region& r, rank_t rank) {
    if (r.where != place::scratch) return;
    r.where = place::output;
    r.first += rank;
  }
};

}  // namespace detail

// AllGather: an algorithm that offers one.
template <class AllGather>
struct scatter_all_gather {
 private:
  static constexpr detail::composed_name spelled{"scatter_all_gather", AllGather::name};

 public:
  static constexpr char const* name = spelled.text;

  struct broadcast : then<contract::broadcast, detail::scatter_into_outputs,
                          schedule_for<contract::all_gather, AllGather>> {
    // Around a ring everybody sends as much as everybody else, so that costs add up exactly.
    static constexpr bool cost_is_bound = !std::is_same_v<AllGather, ring>;
  };
};

}  // namespace collx::inline abi_1::algo
