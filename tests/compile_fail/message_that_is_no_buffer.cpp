// SPDX-License-Identifier: Apache-2.0
// first error: collx: a message lies in a buffer, which has data(), size() and trivially copyable elements
#include <span>

#include "collx/collective/send_receive.hpp"
#include "collx/transport/threads.hpp"

void pass_on(collx::communicator<collx::transport::threads>& comm, double value) {
#ifdef FIXED
  collx::send(comm, std::span(&value, 1), 1);
#else
  collx::send(comm, value, 1);
#endif
}
