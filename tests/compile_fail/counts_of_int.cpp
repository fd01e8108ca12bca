// SPDX-License-Identifier: Apache-2.0
// first error: collx: counts and offsets are lists of std::size_t, such as std::vector<std::size_t>
#include <vector>

#include "collx/collective/all_gather_v.hpp"
#include "collx/transport/threads.hpp"

void collect(collx::communicator<collx::transport::threads>& comm, std::vector<float>& own,
             std::vector<float>& all, std::vector<int> const& counts) {
#ifdef FIXED
  std::vector<std::size_t> const sizes(counts.begin(), counts.end());
  collx::all_gather_v(comm, own, collx::blocks{all, sizes});
#else
  collx::all_gather_v(comm, own, collx::blocks{all, counts});
#endif
}
