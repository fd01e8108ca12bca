// SPDX-License-Identifier: Apache-2.0
// Chain: every rank takes from one neighbour and passes on to the other, in one piece. As many rounds
// as there are hops; a vector of several fragments still travels over many hops at the same time. For
// steps, costs and the reasons to cut smaller see pipelined_chain.hpp.
#pragma once

#include "collx/algo/pipelined_chain.hpp"

namespace collx::inline abi_1::algo {

struct chain : pipelined_chain<1> {
  static constexpr char const* name = "chain";
};

}  // namespace collx::inline abi_1::algo
