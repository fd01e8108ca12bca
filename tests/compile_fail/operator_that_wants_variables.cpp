// SPDX-License-Identifier: Apache-2.0
// first error: collx: the operator must be callable as T(T, T) for the element type
#include <vector>

#include "collx/collective/all_reduce.hpp"
#include "collx/transport/threads.hpp"

void sum_up(collx::communicator<collx::transport::threads>& comm, std::vector<float>& values) {
#ifdef FIXED
  collx::all_reduce(comm, values, [](float a, float b) { return a + b; });
#else
  collx::all_reduce(comm, values, [](float& a, float& b) { return a + b; });
#endif
}
