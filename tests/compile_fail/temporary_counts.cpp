// SPDX-License-Identifier: Apache-2.0
// first error: collx: a buffer that is started with must stay until wait() returns; give it a name
#include <vector>

#include "collx/collective/all_gather_v.hpp"
#include "collx/transport/threads.hpp"

void collect(collx::communicator<collx::transport::threads>& comm, std::vector<float>& own,
             std::vector<float>& all) {
#ifdef FIXED
  collx::all_gather_v(comm, own, collx::blocks{all, std::vector<std::size_t>{1, 2}});  // ends with the call
  std::vector<std::size_t> const counts{1, 2};
  collx::start::all_gather_v(comm, own, collx::blocks{all, counts}).wait();
#else
  collx::start::all_gather_v(comm, own, collx::blocks{all, std::vector<std::size_t>{1, 2}}).wait();
#endif
}
