// SPDX-License-Identifier: Apache-2.0
// first error: collx: the output must not be const
#include <vector>

#include "collx/collective/broadcast.hpp"
#include "collx/transport/threads.hpp"

#ifdef FIXED
using buffer = std::vector<int>;
#else
using buffer = std::vector<int> const;
#endif

void distribute(collx::communicator<collx::transport::threads>& comm, buffer& values) {
  collx::broadcast(comm, values, 0);
}
