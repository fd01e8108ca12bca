// SPDX-License-Identifier: Apache-2.0
// first error: collx: try_broadcast on a communicator that is a temporary, or const; give it a name
#include <vector>

#include "collx/bootstrap/connect.hpp"
#include "collx/collective/broadcast.hpp"

bool share(std::vector<float>& values) {
#ifdef FIXED
  auto world = collx::connect<collx::transport::shm>();
  return collx::try_broadcast(world, values) == collx::status::ok;
#else
  return collx::try_broadcast(collx::connect<collx::transport::shm>(), values) == collx::status::ok;
#endif
}
