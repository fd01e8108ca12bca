// SPDX-License-Identifier: Apache-2.0
// first error: collx: a priority is a template argument: start::all_reduce<collx::priority::urgent>(...)
#include <vector>

#include "collx/collective/all_reduce.hpp"
#include "collx/transport/threads.hpp"

void sum_up(collx::communicator<collx::transport::threads>& comm, std::vector<float>& values) {
#ifdef FIXED
  auto request = collx::start::all_reduce<collx::priority::urgent>(comm, values, collx::sum);
#else
  auto request = collx::start::all_reduce(comm, values, collx::sum, collx::priority::urgent);
#endif
  request.wait();
}
