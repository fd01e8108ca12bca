// SPDX-License-Identifier: Apache-2.0
// first error: collx: reduce with a function that is overloaded, or a template, as its operator
#include <cmath>
#include <vector>

#include "collx/collective/reduce.hpp"
#include "collx/transport/threads.hpp"

void largest(collx::communicator<collx::transport::threads>& comm, std::vector<double> const& values,
             std::vector<double>& result) {
#ifdef FIXED
  auto request = collx::start::reduce(comm, values, result, collx::max, 1);
#else
  auto request = collx::start::reduce(comm, values, result, std::fmax, 1);
#endif
  request.wait();
}
