// SPDX-License-Identifier: Apache-2.0
// first error: collx: a buffer that is started with must stay until wait() returns; give it a name
#include <span>
#include <vector>

#include "collx/collective/all_reduce_fixed_tree.hpp"
#include "collx/transport/threads.hpp"

void begin(collx::communicator<collx::transport::threads>& comm, std::vector<float>& leaves,
           std::vector<float>& sum) {
#ifdef FIXED
  collx::start::all_reduce_fixed_tree(comm, {8}, std::span<float>(leaves), sum).wait();
#else
  collx::start::all_reduce_fixed_tree(comm, {8}, std::vector<float>(leaves), sum).wait();
#endif
}
