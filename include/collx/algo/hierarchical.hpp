// SPDX-License-Identifier: Apache-2.0
// Two levels of network: one algorithm among the ranks of a host (a board, a rack), another between
// hosts. Every rank talks only to ranks of its own host and, on its lane, to those with its place in
// other hosts: all of a host's links carry the same share; in reduce, gather and scatter the root's lane
// carries everything.
//
//   hierarchical<direct_one_shot, ring>      direct inside a host, rings between hosts
//
// For n ranks, L per host, H = n/L hosts (shape::inner is L; it must divide n):
//   all_reduce      Intra reduce_scatter, Inter all_reduce of block l on lane l, Intra all_gather
//   reduce_scatter  Intra reduce_scatter of the H blocks of each lane, Inter reduce_scatter
//   all_gather      Inter all_gather on every lane, Intra all_gather of the H blocks of each lane
//   broadcast       Intra scatter in the root's host, Inter broadcast of block l on lane l, Intra all_gather
//   reduce          Intra reduce in every host to the rank with the root's place, Inter reduce on its lane;
//                   3 vectors of scratch
//   gather          Intra gather in every host to the rank with the root's place, Inter gather of L blocks
//                   each on its lane; scatter backwards; L blocks of scratch, and what the parts need
//   all_to_all      Intra all_to_all of H blocks each, Inter all_to_all of L blocks each: a rank sends H-1
//                   messages between hosts instead of n-L
// A combination is a schedule of its own: prove it (proves_hosts in schedule/proves.hpp). Those with a near
// part of direct_one_shot or ring are right with every far part of the library.
//
// Between hosts a rank sends 1/L of what a flat algorithm among the H hosts would. With one rank per host
// it is Inter alone, with one host Intra alone.
//
//   Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH (2005);
//   Traeff, Hunold: Decomposing MPI collectives for exploiting multi-lane communication (2020); the
//   two-level all-to-all is that of Disaggregated Multi-Tower (Luo et al., 2024).
#pragma once

#include "collx/algo/composed_name.hpp"
#include "collx/algo/hierarchical/all_gather.hpp"
#include "collx/algo/hierarchical/all_reduce.hpp"
#include "collx/algo/hierarchical/all_to_all.hpp"
#include "collx/algo/hierarchical/broadcast.hpp"
#include "collx/algo/hierarchical/gather_scatter.hpp"
#include "collx/algo/hierarchical/reduce.hpp"
#include "collx/algo/hierarchical/reduce_scatter.hpp"

namespace collx::inline abi_1::algo {

namespace detail {

// Each collective is offered if both parts offer what it is made of, and the combination can be said.
template <class Intra, class Inter>
struct offers_all_reduce {};
template <class Intra, class Inter>
  requires algorithm_for<Intra, contract::reduce_scatter> && algorithm_for<Intra, contract::all_gather> &&
           algorithm_for<Inter, contract::all_reduce> &&
           (can_be_said<hierarchical_all_reduce<Intra, Inter>>())
struct offers_all_reduce<Intra, Inter> { using all_reduce = hierarchical_all_reduce<Intra, Inter>; };

template <class Intra, class Inter>
struct offers_reduce_scatter {};
template <class Intra, class Inter>
  requires algorithm_for<Intra, contract::reduce_scatter> && algorithm_for<Inter, contract::reduce_scatter> &&
           (can_be_said<hierarchical_reduce_scatter<Intra, Inter>>())
struct offers_reduce_scatter<Intra, Inter> {
  using reduce_scatter = hierarchical_reduce_scatter<Intra, Inter>;
};

template <class Intra, class Inter>
struct offers_all_gather {};
template <class Intra, class Inter>
  requires algorithm_for<Intra, contract::all_gather> && algorithm_for<Inter, contract::all_gather> &&
           (can_be_said<hierarchical_all_gather<Intra, Inter>>())
struct offers_all_gather<Intra, Inter> { using all_gather = hierarchical_all_gather<Intra, Inter>; };

template <class Intra, class Inter>
struct offers_broadcast {};
template <class Intra, class Inter>
  requires algorithm_for<Intra, contract::scatter> && algorithm_for<Intra, contract::all_gather> &&
           algorithm_for<Inter, contract::broadcast> &&
           (can_be_said<hierarchical_broadcast<Intra, Inter>>())
struct offers_broadcast<Intra, Inter> { using broadcast = hierarchical_broadcast<Intra, Inter>; };

template <class Intra, class Inter>
struct offers_reduce {};
template <class Intra, class Inter>
  requires algorithm_for<Intra, contract::reduce> && algorithm_for<Inter, contract::reduce> &&
           (can_be_said<hierarchical_reduce<Intra, Inter>>())
struct offers_reduce<Intra, Inter> { using reduce = hierarchical_reduce<Intra, Inter>; };

template <class Intra, class Inter>
struct offers_gather {};
template <class Intra, class Inter>
  requires algorithm_for<Intra, contract::gather> && algorithm_for<Inter, contract::gather> &&
           (can_be_said<hierarchical_gather<Intra, Inter>>())
struct offers_gather<Intra, Inter> { using gather = hierarchical_gather<Intra, Inter>; };

template <class Intra, class Inter>
struct offers_scatter {};
template <class Intra, class Inter>
  requires algorithm_for<Intra, contract::scatter> && algorithm_for<Inter, contract::scatter> &&
           (can_be_said<hierarchical_scatter<Intra, Inter>>())
struct offers_scatter<Intra, Inter> { using scatter = hierarchical_scatter<Intra, Inter>; };

template <class Intra, class Inter>
struct offers_all_to_all {};
template <class Intra, class Inter>
  requires algorithm_for<Intra, contract::all_to_all> && algorithm_for<Inter, contract::all_to_all> &&
           (can_be_said<hierarchical_all_to_all<Intra, Inter>>())
struct offers_all_to_all<Intra, Inter> { using all_to_all = hierarchical_all_to_all<Intra, Inter>; };

}  // namespace detail

template <class Intra, class Inter>
struct hierarchical : detail::offers_all_reduce<Intra, Inter>,
                      detail::offers_reduce_scatter<Intra, Inter>,
                      detail::offers_all_gather<Intra, Inter>,
                      detail::offers_broadcast<Intra, Inter>,
                      detail::offers_reduce<Intra, Inter>,
                      detail::offers_gather<Intra, Inter>,
                      detail::offers_scatter<Intra, Inter>,
                      detail::offers_all_to_all<Intra, Inter> {
  static constexpr detail::composed_name spelled{"hierarchical", Intra::name, Inter::name};
  static constexpr char const* name = spelled.text;
};

}  // namespace collx::inline abi_1::algo
