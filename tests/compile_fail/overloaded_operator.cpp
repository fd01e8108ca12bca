// SPDX-License-Identifier: Apache-2.0
// first error: collx: all_reduce with a function that is overloaded, or a template, as its operator
#include <algorithm>
#include <vector>

#include "collx/collective/all_reduce.hpp"
#include "collx/transport/threads.hpp"

void largest(collx::communicator<collx::transport::threads>& comm, std::vector<float>& values) {
#ifdef FIXED
  collx::all_reduce(comm, values, [](float a, float b) { return std::max(a, b); });
#else
  collx::all_reduce(comm, values, std::max<float>);
#endif
}
