// SPDX-License-Identifier: Apache-2.0
// Graphs: what was captured, ready to be carried out as often as it is launched.
#pragma once

#include "cuda/emulated/runtime/capture.hpp"

namespace emulated::runtime {

// Known by its address from here on.
[[nodiscard]] cudaGraph_t enter_graph(std::shared_ptr<graph> made);

// Nodes that run one behind the other. Chains run at the same time, and wait for each other's nodes.
struct chain {
  std::vector<std::size_t> nodes;
};
[[nodiscard]] std::vector<chain> chains_of(graph const& g);

// Carries out all nodes, and returns when all are done. In a thread of a stream.
void carry_out(graph const& g, std::vector<chain> const& chains, int ordinal);

}  // namespace emulated::runtime
