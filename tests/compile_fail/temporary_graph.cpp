// SPDX-License-Identifier: Apache-2.0
// first error: collx: a buffer that is started with must stay until wait() returns; give it a name
#include <vector>

#include "collx/collective/neighbour_all_gather.hpp"
#include "collx/transport/threads.hpp"

using communicator = collx::communicator<collx::transport::threads>;

void begin(communicator& comm, std::vector<int>& in, std::vector<int>& out) {
#ifdef FIXED
  collx::graph const edges(comm, {0}, {0});
  collx::start::neighbour_all_gather(comm, edges, in, out).wait();
#else
  collx::start::neighbour_all_gather(comm, collx::graph(comm, {0}, {0}), in, out).wait();
#endif
}
