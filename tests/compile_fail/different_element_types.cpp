// SPDX-License-Identifier: Apache-2.0
// first error: collx: input and output must have the same element type
#include <vector>

#include "collx/collective/all_gather.hpp"
#include "collx/transport/threads.hpp"

#ifdef FIXED
using element = float;
#else
using element = double;
#endif

void gather(collx::communicator<collx::transport::threads>& comm, std::vector<float> const& mine,
            std::vector<element>& all) {
  collx::all_gather(comm, mine, all);
}
