// SPDX-License-Identifier: Apache-2.0
// first error: collx: all_reduce does not take these arguments (docs/collectives.md); a buffer has data()
#include <span>

#include "collx/collective/all_reduce.hpp"
#include "collx/transport/threads.hpp"

void sum_up(collx::communicator<collx::transport::threads>& comm, float* values, std::size_t count) {
#ifdef FIXED
  collx::all_reduce(comm, std::span(values, count));
#else
  collx::all_reduce(comm, values, count);
#endif
}
