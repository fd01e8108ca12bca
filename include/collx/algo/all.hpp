// SPDX-License-Identifier: Apache-2.0
// The one list of algorithms. Tests, the verifier's exhaustive run, benches, the choice at run time and the
// table in docs/ iterate over it; a new algorithm is its header and one line here.
//
// By name, but for the direct ones: of algorithms that should take equally long, as trees of two ranks do,
// the cost model takes the first (tune/decision.hpp), and only those have short calls (exec/short_call.hpp).
#pragma once

#include "collx/algo/bidirectional_ring.hpp"
#include "collx/algo/binomial_tree.hpp"
#include "collx/algo/bruck.hpp"
#include "collx/algo/chain.hpp"
#include "collx/algo/direct.hpp"
#include "collx/algo/dissemination.hpp"
#include "collx/algo/double_binary_tree.hpp"
#include "collx/algo/knomial_tree.hpp"
#include "collx/algo/neighbour_exchange.hpp"
#include "collx/algo/pairwise.hpp"
#include "collx/algo/pat.hpp"
#include "collx/algo/pipelined_chain.hpp"
#include "collx/algo/push_pull.hpp"
#include "collx/algo/recursive_doubling.hpp"
#include "collx/algo/recursive_halving_doubling.hpp"
#include "collx/algo/recursive_multiplying.hpp"
#include "collx/algo/ring.hpp"
#include "collx/algo/scatter_all_gather.hpp"
#include "collx/algo/streamed_recursive_doubling.hpp"
#include "collx/algo/swing.hpp"
#include "collx/schedule/type_list.hpp"

namespace collx::inline abi_1::algo {

using all = type_list<
    direct_one_shot,
    direct_two_shot,
    bidirectional_ring,
    binomial_tree,
    bruck<2>,
    bruck<4>,
    chain,
    dissemination,
    double_binary_tree,
    knomial_tree<4>,
    neighbour_exchange,
    pairwise,
    pat,
    pipelined_chain<8>,
    push_pull,
    recursive_doubling,
    recursive_halving_doubling,
    recursive_multiplying<4>,
    ring,
    scatter_all_gather<ring>,
    streamed_recursive_doubling,
    swing>;

}  // namespace collx::inline abi_1::algo
