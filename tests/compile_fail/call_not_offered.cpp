// SPDX-License-Identifier: Apache-2.0
// first error: collx: this algorithm offers no schedule for this collective
#include <vector>

#include "collx/algo/binomial_tree.hpp"
#include "collx/algo/ring.hpp"
#include "collx/collective/broadcast.hpp"
#include "collx/transport/threads.hpp"

#ifdef FIXED
using algorithm = collx::algo::binomial_tree;
#else
using algorithm = collx::algo::ring;
#endif

void distribute(collx::communicator<collx::transport::threads>& comm, std::vector<int>& values) {
  collx::broadcast<algorithm>(comm, values, 0);
}
