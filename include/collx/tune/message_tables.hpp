// SPDX-License-Identifier: Apache-2.0
// The built-in tables of transports that send messages, some or all. Measured with bench/compare and
// collx_perf over TCP and over composite<shm, tcp>; see docs/choice.md.
#pragma once

#include "collx/algo/chain.hpp"
#include "collx/algo/direct.hpp"
#include "collx/tune/row.hpp"

namespace collx::inline abi_1::algo {

// What only message transports choose is declared here, so that others need not compile it;
// message_algorithms.hpp and grouped_algorithms.hpp, which those transports include, define it.
struct binomial_tree;
template <std::int32_t K>
struct bruck;
struct dissemination;
struct recursive_doubling;
struct recursive_halving_doubling;
struct ring;
template <class Intra, class Inter>
struct hierarchical;

}  // namespace collx::inline abi_1::algo

namespace collx::inline abi_1::tune {

// Where every byte is a message: what several ranks send one is received one after the other, and two ranks
// that exchange messages keep a connection. So with more than a few ranks, steps that are few for short
// vectors and bytes that are few for long ones, and no rank that has to do with all others. Measured over
// TCP for 2 ranks on 2 cores; for more, which had no core each there, by the number of steps and bytes, and
// what 4 that shared 2 cores took.
// Without a table of their own: all_to_all, of everybody with everybody; gather and scatter, where each rank
// has to do with the root alone and every block travels once.
template <class Contract>
struct message_table { using type = table<row<algo::direct_one_shot>>; };
template <>
struct message_table<contract::all_reduce> {
  using type = table<row<algo::direct_one_shot, any_bytes, 2>, row<algo::direct_one_shot, 32768, 4>,
                     row<algo::direct_two_shot, any_bytes, 4>, row<algo::recursive_doubling, 16384>,
                     row<algo::recursive_halving_doubling, 262144>, row<algo::ring>,
                     row<algo::direct_two_shot, any_bytes, 8>, row<algo::recursive_halving_doubling>>;
};
template <>
struct message_table<contract::reduce_scatter> {
  // The last one for operators that need rank order, which no other keeps.
  using type = table<row<algo::direct_one_shot, any_bytes, 8>, row<algo::ring>, row<algo::direct_one_shot>>;
};
template <>
struct message_table<contract::reduce_scatter_v> : message_table<contract::reduce_scatter> {};
template <>
struct message_table<contract::all_gather> {
  using type = table<row<algo::direct_one_shot, any_bytes, 8>, row<algo::bruck<2>, 65536>, row<algo::ring>>;
};
// By the largest block.
template <>
struct message_table<contract::all_gather_v> : message_table<contract::all_gather> {};
// Of 4 ranks that share cores direct_two_shot takes 0.8 of the chain's time for 512 KiB, and 0.65 for 8 MiB.
// With a network for each, a rank of the chain sends the vector once, the root of direct_two_shot 1.5 times:
// so the chain wins as soon as its fragments are many.
template <>
struct message_table<contract::broadcast> {
  using type = table<row<algo::direct_one_shot, any_bytes, 2>, row<algo::binomial_tree, 65536>,
                     row<algo::direct_two_shot, 8388608, 4>, row<algo::chain>>;
};
template <>
struct message_table<contract::reduce> {
  using type =
      table<row<algo::direct_one_shot, any_bytes, 2>, row<algo::binomial_tree, 65536>, row<algo::chain>>;
};
template <>
struct message_table<contract::scan> {
  using type =
      table<row<algo::direct_one_shot, any_bytes, 4>, row<algo::recursive_doubling, 65536>, row<algo::chain>>;
};
template <>
struct message_table<contract::exclusive_scan> {
  using type = table<row<algo::direct_one_shot, any_bytes, 4>, row<algo::recursive_doubling>>;
};
template <>
struct message_table<contract::barrier> {
  using type = table<row<algo::direct_one_shot, any_bytes, 4>, row<algo::dissemination>>;
};

// What stands before those rows where ranks may share processors: then it is the messages of all ranks
// together that count, and not how many follow each other. Measured over TCP with 3 to 8 ranks on 2 cores.
// (Not over MPI and UCX, where messages within a host are cheap: their endpoints do not say whether ranks
// share.)
template <class Contract>
struct sharing_rows { using type = table<>; };
template <>
struct sharing_rows<contract::all_to_all> { using type = table<row<algo::bruck<2>, 8192, 8, sharing_only>>; };
template <>
struct sharing_rows<contract::all_reduce> {
  using type = table<row<algo::binomial_tree, 524288, 8, sharing_only>>;
};
// That which halves costs twice a block more where ranks are no power of two.
template <>
struct sharing_rows<contract::reduce_scatter> {
  using type = table<row<algo::recursive_halving_doubling, 16384, 8, sharing_only>>;
};
template <>
struct sharing_rows<contract::all_gather> {
  using type = table<row<algo::recursive_doubling, 16384, 8, sharing_only>,
                     row<algo::direct_one_shot, any_bytes, 3, sharing_only>,
                     row<algo::recursive_doubling, 65536, 8, sharing_only>>;
};
template <>
struct sharing_rows<contract::broadcast> { using type = table<row<algo::chain, 8192, 4, sharing_only>>; };
template <>
struct sharing_rows<contract::reduce> {
  using type = table<row<algo::direct_one_shot, 8192, 4, sharing_only>>;
};
template <>
struct sharing_rows<contract::barrier> {
  using type = table<row<algo::binomial_tree, any_bytes, 8, sharing_only>>;
};

// Where some peers are near, and reached by shared memory: a chain crosses from host to host once.
template <class Contract>
struct ungrouped_table : message_table<Contract> {};
template <>
struct ungrouped_table<contract::broadcast> : message_table<contract::reduce> {};

// What stands before those rows where there are several hosts of as many ranks each: algorithms of two levels
// cross from host to host least often, and by all of a host's ranks at a time. Up to 16 ranks one may have to
// do with all other hosts; of more, as above, with few. Bounds are near those of the cost model where ranks
// have a processor each, and, where they share them, what 4 ranks on 2 hosts and 8 on 2 and 4 took, which
// shared 2.
template <class Contract>
struct grouped_rows { using type = table<>; };
template <class Far>
using two_levels = algo::hierarchical<algo::direct_one_shot, Far>;
template <>
struct grouped_rows<contract::all_reduce> {
  using type = table<row<algo::binomial_tree, 16384, 8, grouped_and_sharing>,
                     row<two_levels<algo::direct_one_shot>, 16384, 16, grouped_only>,
                     row<two_levels<algo::recursive_doubling>, 131072, any_size, grouped_only>,
                     row<two_levels<algo::recursive_halving_doubling>, 4194304, any_size, grouped_only>,
                     row<two_levels<algo::ring>, any_bytes, any_size, grouped_only>>;
};
template <>
struct grouped_rows<contract::reduce_scatter> {
  using type = table<row<algo::recursive_halving_doubling, 4096, 8, grouped_and_sharing>,
                     row<two_levels<algo::direct_one_shot>, 65536, 16, grouped_only>,
                     row<two_levels<algo::recursive_halving_doubling>, 65536, any_size, grouped_only>,
                     row<two_levels<algo::ring>, any_bytes, any_size, grouped_only>>;
};
template <>
struct grouped_rows<contract::all_gather> {
  using type = table<row<two_levels<algo::recursive_doubling>, 32768, 8, grouped_and_sharing>,
                     row<two_levels<algo::direct_one_shot>, 65536, 16, grouped_only>,
                     row<two_levels<algo::recursive_doubling>, 65536, any_size, grouped_only>,
                     row<two_levels<algo::ring>, any_bytes, any_size, grouped_only>>;
};
template <>
struct grouped_rows<contract::all_to_all> {
  using type = table<row<two_levels<algo::direct_one_shot>, 16384, any_size, grouped_only>>;
};
template <>
struct grouped_rows<contract::barrier> {
  using type = table<row<algo::binomial_tree, any_bytes, 8, grouped_and_sharing>,
                     row<two_levels<algo::direct_one_shot>, any_bytes, 16, grouped_only>,
                     row<two_levels<algo::recursive_doubling>, any_bytes, any_size, grouped_only>>;
};

template <class Contract>
struct combined_table {
  using type =
      decltype(joined(typename grouped_rows<Contract>::type{}, typename ungrouped_table<Contract>::type{}));
};
template <class Contract>
struct sharing_table {
  using type =
      decltype(joined(typename sharing_rows<Contract>::type{}, typename message_table<Contract>::type{}));
};

}  // namespace collx::inline abi_1::tune
