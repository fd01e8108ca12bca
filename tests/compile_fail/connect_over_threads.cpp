// SPDX-License-Identifier: Apache-2.0
// first error: collx: connect() knows transport::shm (collx/bootstrap/connect.hpp) and transport::tcp
#include "collx/bootstrap/connect.hpp"
#include "collx/transport/threads.hpp"

#ifdef FIXED
using transport = collx::transport::shm;
#else
using transport = collx::transport::threads;
#endif

int ranks() { return collx::connect<transport>().size(); }
