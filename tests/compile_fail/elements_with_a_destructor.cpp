// SPDX-License-Identifier: Apache-2.0
// first error: collx: broadcast does not take these arguments
// shows: buffer_like
#include <string>
#include <vector>

#include "collx/collective/broadcast.hpp"
#include "collx/transport/threads.hpp"

#ifdef FIXED
using element = char;
#else
using element = std::string;
#endif

void distribute(collx::communicator<collx::transport::threads>& comm, std::vector<element>& values) {
  collx::broadcast(comm, values, 0);
}
