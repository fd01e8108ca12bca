// SPDX-License-Identifier: Apache-2.0
// first error: collx: a number stands where the operator belongs; a root comes behind it
#include <vector>

#include "collx/collective/reduce.hpp"
#include "collx/transport/threads.hpp"

void sum_up(collx::communicator<collx::transport::threads>& comm, std::vector<int>& values) {
#ifdef FIXED
  collx::reduce(comm, values, collx::sum, 1);
#else
  collx::reduce(comm, values, 1);
#endif
}
