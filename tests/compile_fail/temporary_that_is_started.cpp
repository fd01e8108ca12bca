// SPDX-License-Identifier: Apache-2.0
// first error: collx: a buffer that is started with must stay until wait() returns; give it a name
#include <span>
#include <vector>

#include "collx/collective/all_reduce.hpp"
#include "collx/transport/threads.hpp"

void begin(collx::communicator<collx::transport::threads>& comm, std::vector<int>& values) {
#ifdef FIXED
  collx::start::all_reduce(comm, std::span<int>(values)).wait();
#else
  collx::start::all_reduce(comm, std::vector<int>(values)).wait();
#endif
}
