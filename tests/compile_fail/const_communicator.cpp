// SPDX-License-Identifier: Apache-2.0
// first error: collx: all_reduce on a communicator that is a temporary, or const; give it a name
#include <vector>

#include "collx/collective/all_reduce.hpp"
#include "collx/transport/threads.hpp"

#ifdef FIXED
using communicator = collx::communicator<collx::transport::threads>;
#else
using communicator = collx::communicator<collx::transport::threads> const;
#endif

void sum_up(communicator& comm, std::vector<float>& values) { collx::all_reduce(comm, values); }
