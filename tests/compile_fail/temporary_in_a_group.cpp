// SPDX-License-Identifier: Apache-2.0
// first error: collx: a buffer that is listed must stay until run() or wait() returns; give it a name
#include <span>
#include <vector>

#include "collx/collective/group.hpp"
#include "collx/transport/threads.hpp"

void list(collx::group<collx::transport::threads>& calls, std::vector<int>& values) {
#ifdef FIXED
  calls.broadcast(std::span<int>(values));
#else
  calls.broadcast(std::vector<int>(values));
#endif
}
