// SPDX-License-Identifier: Apache-2.0
// first error: collx: symmetric memory is for trivially copyable elements
#include <string>

#include "collx/communicator.hpp"
#include "collx/transport/threads.hpp"

void set_aside(collx::communicator<collx::transport::threads>& comm) {
#ifdef FIXED
  (void)comm.allocate<char>(10);
#else
  (void)comm.allocate<std::string>(10);
#endif
}
